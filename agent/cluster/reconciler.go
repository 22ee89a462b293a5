package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconciler writes the status of the ManagedCluster of this agent and controls its heartbeat.
type Reconciler struct {
	// Hub is the hub; its cache watches the ManagedCluster named Cluster, with the transform StripManagedCluster, and
	// needs to hold no other.
	Hub cluster.Cluster
	// Spoke is the managed cluster; its cache watches Nodes, with the transform StripNode. The reconciler watches claims
	// and namespaces itself.
	Spoke cluster.Cluster
	// Cluster is the name of the cluster and of its namespace on the hub.
	Cluster string
	// HubURL is the address of the hub in the kubeconfig; its hash is in the label of the namespaces that the hub manages.
	HubURL string
	// NoClaims disables ClusterClaims, Properties enables ClusterProperties (feature gates ClusterClaim and
	// ClusterProperty). With neither of them the claims of the ManagedCluster stay unchanged.
	NoClaims, Properties bool
	// Claims selects the claims that are reported.
	Claims ClaimRules
	// Period is the longest time between two passes; zero means no limit. It is a safety net: a pass in which nothing
	// changed reads caches and sends nothing, and probes do not depend on the period (docs/adr/0006).
	Period time.Duration
	// Health probes the API server of the spoke.
	Health *Health
	// Heartbeat is controlled by this reconciler; SetupWithManager adds it to the manager.
	Heartbeat *Heartbeat
	// OnAbsent is called in each pass with why the agent has no ManagedCluster to report to, and with an empty text when
	// it has one. Optional; it must not block.
	OnAbsent func(text string)
	// Clock is the clock of a pass.
	Clock clock.PassiveClock

	// claims and properties are nil when they are disabled.
	claims, properties *optionalKind
	namespaces         *collection[namespace]
	// label is the key of the label of managed namespaces.
	label   string
	spaces  dynamic.ResourceInterface
	events  events
	trigger trigger
	// summed is when sums over the nodes were written last; only passes use it, one at a time.
	summed time.Time
}

// Reconcile updates the heartbeat, the labels of namespaces and the status of the ManagedCluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name != r.Cluster {
		return reconcile.Done().Settle(r.Clock.Now())
	}
	f, err := r.observe(ctx)
	if err != nil {
		return reconcile.FromError(err).Settle(f.now)
	}
	if r.OnAbsent != nil {
		r.OnAbsent(f.absent)
	}
	p := decide(f)
	results := r.act(ctx, p)
	outcome := reconcile.FromError(failures(results)).And(reconcile.DoneUntil(p.wake))
	if f.cluster == nil {
		return outcome.Settle(f.now)
	}
	after := conclude(f, p, results)
	hub := client.WithFieldOwner(r.Hub.GetClient(), fieldManager)
	written, err := reconcile.PatchStatus(ctx, hub, f.cluster, after)
	if written && p.refresh && !p.withhold && sumsChange(f) {
		r.summed = f.now
	}
	if written && err == nil {
		r.recordEvent(ctx, f.cluster, after, f.now)
	}
	return outcome.And(reconcile.FromError(err)).Settle(f.now)
}

// act starts, stops or retimes the heartbeat, which reports its errors itself, and marks namespaces. It returns the
// error of each marking by the name of the namespace.
func (r *Reconciler) act(ctx context.Context, p plan) map[string]error {
	r.Heartbeat.SetPeriod(p.heartbeat)
	if p.awaitHeartbeat {
		r.Heartbeat.NotifyNext()
	}
	results := make(map[string]error, len(p.markings))
	for _, m := range p.markings {
		results[m.name] = r.mark(ctx, m)
	}
	return results
}

// mark sets the label of the hub on a namespace. A managed namespace is created if it is missing; one that is no longer
// managed may be missing.
func (r *Reconciler) mark(ctx context.Context, m marking) error {
	var err error
	if m.managed {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
				"name": m.name, "labels": map[string]any{r.label: managedTrue},
			},
		}}
		_, err = r.spaces.Apply(ctx, m.name, object, metav1.ApplyOptions{FieldManager: r.manager(), Force: true})
	} else {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, r.label, managedFalse)
		_, err = r.spaces.Patch(ctx, m.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: r.manager()})
		if apierrors.IsNotFound(err) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("marking namespace %s as managed=%t: %w", m.name, m.managed, err)
	}
	return nil
}

// manager is the field manager of the label. Each hub has its own: server-side apply removes fields that the same
// manager applied before and no longer applies, so two agents of two hubs would remove the label of each other.
func (r *Reconciler) manager() string { return reportingController + "-" + r.label[len(r.label)-8:] }

// failures joins the errors of the markings.
func failures(results map[string]error) error {
	failed := make([]error, 0, len(results))
	for _, err := range results {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
