package agent

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/agent/addon"
	agentcluster "github.com/spokelet/spokelet/agent/cluster"
	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/agent/work"
	"github.com/spokelet/spokelet/internal/addonapi"
	kit "github.com/spokelet/spokelet/internal/reconcile"
)

// The pauses between two looks at a hub that is away or has not accepted the cluster.
const (
	firstLook, lastLook = 200 * time.Millisecond, 15 * time.Second
	// lookSpread lengthens the pauses by up to this share, differently for each cluster.
	lookSpread = 0.5
)

// serving is what the reconcilers of one serving phase share.
type serving struct {
	*agent
	host, spoke, hub cluster.Cluster
	boot             bootstrap
	credential       join.Credential
	wire             addonapi.Wire
	noClaims         bool
	heartbeat        *agentcluster.Heartbeat
	keeper           *keeper
}

// reconciler is what can be added to a manager.
type reconciler interface {
	SetupWithManager(mgr ctrl.Manager) error
}

// reconcilers returns everything that serves.
func (s *serving) reconcilers() []reconciler {
	id, namespace, now := s.credential.Identity, s.config.Namespace, s.clock
	return []reconciler{
		&join.Reconciler{
			Hub: s.hub, Agent: s.host, Namespace: namespace, Identity: id, Server: s.boot.server,
			ExpirationSeconds: s.certExpiration(), OnCredential: s.keeper.offer, Clock: now,
		},
		&agentcluster.Reconciler{
			Hub: s.hub.GetClient(), HubCache: s.hub.GetCache(), Spoke: s.spoke.GetClient(), SpokeCache: s.spoke.GetCache(),
			Cluster: id.Cluster, NoClaims: s.noClaims, Claims: s.config.Claims, Health: s.health, Heartbeat: s.heartbeat,
			Clock: now,
		},
		&addon.Reconciler{
			Hub: s.hub, Wire: s.wire, Agent: s.host, Spoke: s.spoke, Namespace: namespace, Cluster: id.Cluster,
			Server: s.boot.server, ExpirationSeconds: s.certExpiration(), Clock: now,
		},
		&work.Reconciler{
			Cluster: id.Cluster, AgentID: s.config.AgentID, HubHash: work.HubHash(s.boot.server.Server), Hub: s.hub,
			Spoke: s.spoke, EvictionGrace: s.config.EvictionGracePeriod, Workers: s.config.Workers, Clock: now,
		},
	}
}

// serve does what a member of the hub does; it ends when the credential or the bootstrap kubeconfig leads elsewhere.
func (a *agent) serve(ctx context.Context, boot bootstrap, credential join.Credential) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	connection, err := connectHub(credential)
	if err != nil {
		return err
	}
	defer connection.close()
	mgr, err := a.newManager(ctx, credential.Identity.Cluster)
	if err != nil {
		return err
	}
	s := &serving{agent: a, host: mgr, boot: boot, credential: credential}
	s.keeper = a.newKeeper(connection, credential, end)
	if s.spoke, err = a.newSpoke(mgr, credential.Identity.Cluster); err != nil {
		return err
	}
	config := connection.config(a.config.HubQPS, a.config.HubBurst)
	if s.hub, err = a.newHub(mgr, config, credential.Identity.Cluster); err != nil {
		return err
	}
	leases, err := coordinationv1client.NewForConfigAndClient(config, s.hub.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("building the client of the heartbeat: %w", err)
	}
	s.heartbeat = &agentcluster.Heartbeat{
		Leases: leases.Leases(credential.Identity.Cluster), Cluster: credential.Identity.Cluster, Clock: a.clock,
	}
	if err := s.await(ctx, credential.NotAfter); err != nil {
		return err
	}
	if err := s.setup(mgr, end); err != nil {
		return err
	}
	a.state.set(ready)
	return finish(ctx, mgr)
}

// setup adds everything that serves to the manager.
func (s *serving) setup(mgr ctrl.Manager, end context.CancelCauseFunc) error {
	if err := mgr.Add(s.keeper); err != nil {
		return fmt.Errorf("adding the keeper of the credential: %w", err)
	}
	for _, r := range s.reconcilers() {
		if err := r.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return s.bootstrap.watch(mgr, s.boot.kubeconfig, end)
}

// await looks until the hub has accepted the cluster, which the cluster cannot watch for before it is accepted, and
// finds out what both clusters serve. It ends a phase whose certificate expires meanwhile.
func (s *serving) await(ctx context.Context, expires time.Time) error {
	logger := ctrl.LoggerFrom(ctx)
	ctx, cancel := context.WithDeadlineCause(ctx, expires, phaseOverError("the certificate for the hub expired"))
	defer cancel()
	pause, told := firstLook, ""
	for {
		err := s.look(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err.Error() != told {
			told = err.Error()
			logger.Info("not serving yet, looking again", "reason", told)
			s.state.set("waiting for the hub: " + told)
		}
		sleep(ctx, kit.Spread(pause, lookSpread, s.credential.Identity.Cluster))
		pause = min(2*pause, lastLook)
	}
}

// look tells whether the phase can begin, and if not, why.
func (s *serving) look(ctx context.Context) error {
	name := s.credential.Identity.Cluster
	var own clusterv1.ManagedCluster
	if err := s.hub.GetAPIReader().Get(ctx, types.NamespacedName{Name: name}, &own); err != nil {
		return fmt.Errorf("reading ManagedCluster %s (has the hub accepted the cluster?): %w", name, err)
	}
	// The hub says that it accepted a cluster after it gave it all its rights, so nothing is refused from here on.
	if !meta.IsStatusConditionTrue(own.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) {
		return fmt.Errorf("ManagedCluster %s is not accepted: spec.hubAcceptsClient is %t on the hub", name,
			own.Spec.HubAcceptsClient)
	}
	var err error
	if s.wire, err = addonapi.Detect(s.hub.GetRESTMapper()); err != nil {
		return err
	}
	kind := schema.GroupKind{Group: clusterv1alpha1.GroupName, Kind: "ClusterClaim"}
	_, err = s.spoke.GetRESTMapper().RESTMapping(kind, clusterv1alpha1.GroupVersion.Version)
	if s.noClaims = meta.IsNoMatchError(err); err != nil && !s.noClaims {
		return fmt.Errorf("asking the managed cluster whether it serves %s: %w", kind, err)
	}
	if s.noClaims {
		ctrl.LoggerFrom(ctx).Info("the managed cluster serves no ClusterClaims, so none are reported until the next start")
	}
	return nil
}
