package agent

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/spokelet/spokelet/agent/addon"
	agentcluster "github.com/spokelet/spokelet/agent/cluster"
	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/agent/work"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/addonapi"
	kit "github.com/spokelet/spokelet/internal/reconcile"
)

// The pauses between two looks at a hub that is away or has not accepted the cluster.
const (
	firstLook, lastLook = 200 * time.Millisecond, 15 * time.Second
	// lookSpread lengthens the pauses by up to this share, differently for each cluster.
	lookSpread = 0.5
	// hurry is the share of what is left of the certificate that a pause may take.
	hurry = 8
)

// serving is one serving phase and what its reconcilers share.
type serving struct {
	*agent
	mgr              ctrl.Manager
	host, spoke, hub cluster.Cluster
	boot             bootstrap
	credential       join.Credential
	wire             addonapi.Wire
	applier          *work.Reconciler
	heartbeat        *agentcluster.Heartbeat
	keeper           *keeper
	versions         *addonapi.Versions
	lookout          *lookout
	end              context.CancelCauseFunc
	// quiet is set where there are several hubs, lookout and heartbeat where the process does registration, and applier
	// where it does works.
	quiet *silence
	// admitted tells that the hub accepted the cluster and everything serves.
	admitted atomic.Bool
}

// reconcilers returns everything that serves.
func (s *serving) reconcilers() []kit.Setup {
	id, c, now := s.credential.Identity, &s.config, s.clock
	var list []kit.Setup
	if c.Duties.Works {
		list = append(list, s.applier)
	}
	if !c.Duties.Registration {
		return list
	}
	list = append(list,
		&join.Reconciler{
			Hub: s.hub, Agent: s.host, Namespace: c.Namespace, SecretName: c.HubSecret, Identity: id, Server: s.boot.server,
			ExpirationSeconds: s.certExpiration(), OnCredential: s.keeper.offer, Clock: now, Ahead: s.hubTime.Ahead,
		},
		&agentcluster.Reconciler{
			Hub: s.hub, Spoke: s.spoke, Cluster: id.Cluster, HubURL: s.boot.server.Server, Claims: c.Claims,
			NoClaims: !c.Gates.ClusterClaim, Properties: c.Gates.ClusterProperty, Period: c.Period,
			Health: s.health, Heartbeat: s.heartbeat, Clock: now,
		},
	)
	if c.Gates.AddonManagement {
		list = append(list, &addon.Reconciler{
			Hub: s.hub, Wire: s.wire, Agent: s.host, Spoke: s.spoke, Namespace: c.Namespace, SecretName: c.HubSecret,
			Cluster: id.Cluster, User: csr.ClusterUser(id.Cluster, id.Agent), Server: s.boot.server,
			ExpirationSeconds: s.certExpiration(),
			Driver:            c.AddonDriver, TokenExpirationSeconds: c.AddonTokenExpirationSeconds, Clock: now,
			Ahead: s.hubTime.Ahead,
		})
	}
	if c.Gates.MultipleHubs {
		list = append(list, &denial{hub: s.hub, cluster: id.Cluster, end: s.end})
	}
	return list
}

// serve does what a member of the hub does. It ends when the credential or the bootstrap kubeconfig leads elsewhere,
// when the hub does not take the credential any more, and where there are several hubs when this one denies the cluster
// or falls silent.
func (a *agent) serve(ctx context.Context, v view, boot bootstrap, credential join.Credential) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s := &serving{agent: a, boot: boot, credential: credential, end: end}
	if a.config.Gates.MultipleHubs {
		s.quiet = newSilence(a.clock, a.config.HubTimeout, a.leave(boot, end))
	}
	s.lookout = a.newLookout(v, func(now []finding) string { return leadsElsewhere(boot.server, now) }, end)
	return s.run(ctx, func() error { return a.setupPhase(s.mgr, s.lookout) })
}

// run serves until ctx ends. setup adds to the manager of the phase what watches the ground that it stands on.
func (s *serving) run(ctx context.Context, setup func() error) error {
	server := s.boot.server.Server
	s.state.set("waiting for hub " + server)
	watch := &answers{
		clock: s.clock, time: s.hubTime, patience: s.config.UnauthorizedAfter, refused: s.refusedSince,
		taken: s.takenAgain,
	}
	if s.quiet != nil {
		watch.heard = s.heard
	}
	hub := newReach(s.clock, ctrl.LoggerFrom(ctx), server)
	s.state.follow(hub)
	defer s.state.follow(nil)
	connection, err := connectHub(s.credential, watch)
	if err != nil {
		return err
	}
	defer connection.close()
	connection.reach = hub
	s.versions = s.newVersions()
	s.keeper = s.newKeeper(connection, s.credential, s.end)
	if err := s.connect(ctx, connection); err != nil {
		return err
	}
	if s.config.Duties.Works {
		if s.applier, err = s.works(ctx, s.spoke, s.hub, server, s.credential.Identity.Cluster); err != nil {
			return err
		}
		if err := s.applier.SetupOffline(s.mgr); err != nil {
			return err
		}
	}
	for _, runnable := range s.runnables() {
		if err := s.mgr.Add(runnable); err != nil {
			return fmt.Errorf("preparing to serve: %w", err)
		}
	}
	if err := setup(); err != nil {
		return err
	}
	return finish(ctx, s.mgr)
}

// connect builds the clients of the phase.
func (s *serving) connect(ctx context.Context, connection *hubConnection) error {
	id := s.credential.Identity
	name := id.Cluster
	var err error
	if s.mgr, err = s.newManager(ctx, name); err != nil {
		return err
	}
	s.host = s.mgr
	if s.spoke, err = s.newSpoke(s.mgr, name); err != nil {
		return err
	}
	config := connection.config(s.config.HubQPS, s.config.HubBurst, s.config.WrapTransport)
	if s.hub, err = s.newHub(s.mgr, config, name, csr.ClusterUser(id.Cluster, id.Agent),
		s.versions.Note); err != nil {
		return err
	}
	if !s.config.Duties.Registration {
		return nil
	}
	leases, err := coordinationv1client.NewForConfigAndClient(config, s.hub.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("building the client of the heartbeat: %w", err)
	}
	s.heartbeat = &agentcluster.Heartbeat{Leases: leases.Leases(name), Cluster: name, Clock: s.clock}
	if s.quiet != nil {
		s.heartbeat.Leases = heardLeases{Leases: s.heartbeat.Leases, heard: s.quiet.heard}
	}
	return nil
}

// runnables returns what runs beside the reconcilers from the start of the phase.
func (s *serving) runnables() []manager.Runnable {
	list := []manager.Runnable{s.keeper, manager.RunnableFunc(s.admit)}
	if s.quiet != nil {
		list = append(list, s.quiet)
	}
	return list
}

// heard notes an answer of the hub while there are no heartbeats yet.
func (s *serving) heard() {
	if !s.admitted.Load() {
		s.quiet.heard()
	}
}

// refusedSince ends the phase when the hub does not take the credential any more and there is another way in. Without
// one it is told, and the hub is asked on.
func (s *serving) refusedSince(since time.Time) {
	why := fmt.Sprintf("hub %s answers nothing but 401 Unauthorized to the certificate since %s", s.boot.server.Server,
		since.UTC().Format(time.RFC3339))
	switch {
	case s.lookout == nil:
		why += ": the registration agent has to join again"
	case anyUsable(s.lookout.latest()):
		current := s.keeper.latest()
		s.refused.Store(&current)
		s.end(phaseOverError(why))
		return
	default:
		why += ", and there is no bootstrap kubeconfig to join again with: " + problems(s.lookout.latest())
	}
	if s.state.set(why) {
		s.mgr.GetLogger().Info("the hub refuses the certificate", "reason", why)
	}
}

// takenAgain tells that the hub takes the credential again.
func (s *serving) takenAgain() {
	if s.admitted.Load() {
		s.state.set(ready)
	}
}

// admit is a Runnable that looks until the hub has accepted the cluster, which the cluster cannot watch for before,
// finds out what the hub serves, and then adds everything that serves.
func (s *serving) admit(ctx context.Context) error {
	logger := ctrl.LoggerFrom(ctx)
	pause := firstLook
	for {
		err := s.look(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the phase is over, and knows why
		}
		if s.tellWaiting(err) {
			logger.Info("not serving yet, looking again", "reason", err.Error())
		}
		s.sleep(ctx, kit.Spread(pause, lookSpread, s.credential.Identity.Cluster))
		pause = min(2*pause, s.longestPause())
	}
	if s.config.Duties.Registration {
		s.versions.Wire = s.wire
		if err := s.mgr.Add(s.versions); err != nil {
			return fmt.Errorf("adding the watch of the versions that the hub serves: %w", err)
		}
	}
	if err := kit.SetupAll(s.mgr, s.reconcilers()...); err != nil { // the manager is running already
		return err
	}
	s.admitted.Store(true)
	s.state.set(ready)
	return nil
}

// tellWaiting tells why nothing can serve yet, and returns whether that is to be logged: not what is said of the hub
// anyway. While the hub does not answer, an agent that has copies of its works does what it can.
func (s *serving) tellWaiting(err error) (news bool) {
	text := "waiting for the hub: " + err.Error()
	if !s.state.explains(err) {
		return s.state.set(text)
	}
	if s.applier != nil && s.applier.Copies() > 0 {
		s.state.standBy("waiting for the hub, looking after the works by their copies: " + err.Error())
		return false
	}
	s.state.set(text)
	return false
}

// longestPause is the longest pause between two looks: shorter when the certificate is about to run out, because who
// waits does not renew it.
func (s *serving) longestPause() time.Duration {
	left := s.credential.NotAfter.Sub(s.hubTime.Now())
	return min(lastLook, max(left/hurry, time.Second))
}

// look reports whether everything can begin to serve, and if not, why.
func (s *serving) look(ctx context.Context) error {
	name := s.credential.Identity.Cluster
	var own clusterv1.ManagedCluster
	if err := s.hub.GetAPIReader().Get(ctx, types.NamespacedName{Name: name}, &own); err != nil {
		return fmt.Errorf("reading ManagedCluster %s (has the hub accepted the cluster?): %w", name, err)
	}
	if s.config.Gates.MultipleHubs && denied(&own) {
		s.end(phaseOverError("the hub denied the cluster"))
	}
	// The hub says that it accepted a cluster after it gave it all its rights, so nothing is refused from here on.
	if !meta.IsStatusConditionTrue(own.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) {
		return fmt.Errorf("ManagedCluster %s is not accepted: spec.hubAcceptsClient is %t on the hub", name,
			own.Spec.HubAcceptsClient)
	}
	if !s.config.Duties.Registration {
		return nil
	}
	var err error
	s.wire, err = addonapi.DetectAt(s.hub.GetConfig(), s.hub.GetHTTPClient())
	return err
}
