package agent

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spokelet/spokelet/agent/work"
	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/agent/work/offline"
)

// works returns the reconciler of the works of a hub and a cluster, with its offline copies. hub is nil in a phase
// without a connection to the hub.
func (a *agent) works(
	ctx context.Context, spoke, hub cluster.Cluster, server, clusterName string,
) (*work.Reconciler, error) {
	c := &a.config
	r := &work.Reconciler{
		Cluster: clusterName, AgentID: c.AgentID, HubHash: work.HubHash(server), Hub: hub, Spoke: spoke,
		EvictionGrace: max(c.EvictionGracePeriod, evictAtOnce), Workers: c.Workers, Clock: a.clock,
		MaxWatches: c.MaxWatches, Relist: c.WorkRelist,
		RawFeedback: c.Gates.RawFeedback, MaxJSONRawLength: c.MaxJSONRawLength,
		RecordEvents: true, Metrics: metrics.Registry,
		Missing:   missing.Policy(c.EvictMissingWorks),
		OnMissing: func(text string) { a.state.Note(noteWorks, text) },
	}
	var err error
	if r.Objects, err = a.workConfig(ctrl.LoggerFrom(ctx), spoke.GetConfig()); err != nil || c.WorkCacheDir == "" {
		return r, err
	}
	r.Cache, err = offline.Open(ctx, offline.Config{
		Dir: c.WorkCacheDir, MaxBytes: int64(c.WorkCacheMiB) << mebi, Secrets: a.live, Namespace: c.Namespace,
		HubHash: r.HubHash, Cluster: clusterName,
	})
	return r, err
}

// noteWorks, noteHeartbeat and noteCluster name the notes of /readyz?verbose about works that are missing on the hub,
// heartbeats that it does not take, and a missing ManagedCluster.
const noteWorks, noteHeartbeat, noteCluster = "works", "heartbeat", "cluster"

// evictAtOnce is the grace period for --appliedmanifestwork-eviction-grace-period=0; zero would be the default.
const evictAtOnce = time.Nanosecond

// worksWithoutHub adds the reconciler that keeps works by their offline copies to the manager of a phase without a
// credential for the hub, and reports whether there are any.
func (a *agent) worksWithoutHub(
	ctx context.Context, mgr ctrl.Manager, server, clusterName string,
) (keeps bool, err error) {
	if a.config.WorkCacheDir == "" || !a.config.Duties.Works {
		return false, nil
	}
	spoke, err := a.newSpoke(mgr, clusterName)
	if err != nil {
		return false, err
	}
	r, err := a.works(ctx, spoke, nil, server, clusterName)
	if err != nil {
		return false, err
	}
	return r.Copies() > 0, r.SetupOffline(mgr)
}
