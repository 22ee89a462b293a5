package agent

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/spokelet/spokelet/agent/addon"
	"github.com/spokelet/spokelet/agent/bootstrap"
	agentcluster "github.com/spokelet/spokelet/agent/cluster"
	"github.com/spokelet/spokelet/agent/health"
	"github.com/spokelet/spokelet/agent/hubconn"
	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/agent/work"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/expiry"
	"github.com/spokelet/spokelet/internal/pause"
	kit "github.com/spokelet/spokelet/internal/reconcile"
)

// The pauses between two polls of a hub that does not respond or has not accepted the cluster.
const (
	firstPoll, lastPoll = 200 * time.Millisecond, 15 * time.Second
	// pollSpread lengthens the pauses by up to this share, differently for each cluster.
	pollSpread = 0.5
	// pollShare is the divisor that turns the remaining life of the certificate into the longest pause.
	pollShare = 8
)

// serving is one serving phase: the state that its reconcilers share.
type serving struct {
	*agent
	ends
	// mgr is also the cluster that the agent runs on.
	mgr        ctrl.Manager
	spoke, hub cluster.Cluster
	// addonHost is the cluster that the agent runs on as add-ons need it; nil where the agent has no add-ons.
	addonHost  cluster.Cluster
	target     bootstrap.Target
	credential join.Credential
	// wire is the version of add-ons in use, versions watches which ones the hub serves.
	wire     addonapi.Wire
	versions *addonapi.Versions
	// applier is set where the process does works, heartbeat where it does registration.
	applier   *work.Reconciler
	heartbeat *agentcluster.Heartbeat
	// admitted is set when the hub has accepted the cluster and everything serves.
	admitted atomic.Bool
}

// ends are the reasons for which a serving phase may end.
type ends struct {
	// end ends the phase.
	end context.CancelCauseFunc
	// keeper ends it with the certificate.
	keeper *keeper
	// watcher ends it with its inputs; nil where the process does no registration.
	watcher *bootstrap.Watcher
	// watchdog ends it at a hub of several that does not respond; nil where there is only one.
	watchdog *hubconn.Watchdog
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
			Hub: s.hub, Agent: s.mgr, Namespace: c.Namespace, SecretName: c.HubSecret, Identity: id, Server: s.target.Server,
			ExpirationSeconds: s.certExpiration(), OnCredential: s.keeper.offer, Clock: now, Ahead: s.hubClock.Ahead,
			Ends: s.certificates,
		},
		&agentcluster.Reconciler{
			Hub: s.hub, Spoke: s.spoke, Cluster: id.Cluster, HubURL: s.target.Server.Server, Claims: c.Claims,
			HostingCluster: c.hostingClaim(id.Cluster), NoClaims: !c.Gates.ClusterClaim,
			Properties: c.Gates.ClusterProperty, Period: c.Period,
			Health: s.spokeHealth, Heartbeat: s.heartbeat, Clock: now,
			OnAbsent: func(text string) { s.state.Note(noteCluster, text) },
		},
	)
	if c.Gates.AddonManagement {
		spoke := s.spoke
		if !s.hosted() {
			spoke = s.addonHost
		}
		list = append(list, &addon.Reconciler{
			Hub: s.hub, Wire: s.wire, Agent: s.addonHost, Spoke: spoke, Namespace: c.Namespace, SecretName: c.HubSecret,
			HostedNamespaces: c.HostedAddonNamespaces, Cluster: id.Cluster, User: csr.ClusterUser(id.Cluster, id.Agent),
			Server: s.target.Server, ExpirationSeconds: s.certExpiration(),
			Driver: c.AddonDriver, TokenExpirationSeconds: c.AddonTokenExpirationSeconds, Clock: now,
			Ahead: s.hubClock.Reading, Reserved: c.ownSecrets(), Ends: s.certificates,
		})
	}
	if c.Gates.MultipleHubs {
		list = append(list, &bootstrap.DenialWatch{Hub: s.hub, Cluster: id.Cluster, End: endPhase(s.end)})
	}
	return list
}

// serve serves as a member of the hub. It ends when the credential or the bootstrap kubeconfig leads to another hub,
// when the hub rejects the credential, and where there are several hubs when this one denies the cluster or stops
// responding.
func (a *agent) serve(ctx context.Context, v view, credential join.Credential) error {
	target := v.target
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s := &serving{agent: a, target: target, credential: credential, ends: ends{end: end}}
	if a.config.Gates.MultipleHubs {
		s.watchdog = a.newWatchdog(target, end)
	}
	moved := func(now []bootstrap.Candidate) string { return bootstrap.Moved(target.Server, now) }
	s.watcher = a.newWatcher(v, moved, end)
	return s.run(ctx, func() error { return a.setupPhase(s.mgr, s.watcher) })
}

// run serves until ctx ends. setup adds the watches that end the phase to its manager.
func (s *serving) run(ctx context.Context, setup func() error) error {
	server := s.target.Server.Server
	s.state.Set("waiting for hub " + server)
	observers := hubconn.Observers{
		Responses: &hubconn.Responses{
			Clock: s.clock, UnauthorizedAfter: s.config.UnauthorizedAfter, Rejected: s.rejectedSince, Accepted: s.acceptedAgain,
		},
		Reachability: hubconn.NewReachability(s.clock, ctrl.LoggerFrom(ctx), server),
		Clock:        s.hubClock,
	}
	if s.watchdog != nil {
		observers.Responses.Answered = s.resetWatchdog
	}
	s.state.Follow(observers.Reachability)
	defer s.state.Follow(nil)
	defer s.state.Note(noteWorks, "")
	defer s.state.Note(noteHeartbeat, "")
	defer s.state.Note(noteCluster, "")
	defer s.certificates.Reset(expiry.AddOn)
	connection, err := hubconn.Connect(s.credential.Server, s.credential.Pair, observers)
	if err != nil {
		return err
	}
	defer connection.Close()
	s.versions = s.newVersions()
	s.keeper = s.newKeeper(connection, s.credential, s.end)
	if err := s.connect(ctx, connection); err != nil {
		return err
	}
	if s.config.Duties.Works {
		if s.applier, err = s.works(ctx, s.spoke, server, s.credential.Identity.Cluster); err != nil {
			return err
		}
		s.applier.Hub = s.hub
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
func (s *serving) connect(ctx context.Context, connection *hubconn.Connection) error {
	id := s.credential.Identity
	name := id.Cluster
	var err error
	if s.mgr, err = s.newManager(ctx); err != nil {
		return err
	}
	if s.spoke, err = s.newSpoke(s.mgr, name); err != nil {
		return err
	}
	if s.config.Duties.Registration && s.config.Gates.AddonManagement {
		if s.addonHost, err = s.newAddonHost(s.mgr, name); err != nil {
			return err
		}
	}
	config := connection.RESTConfig(s.config.WrapTransport)
	limit(config, s.config.HubQPS, s.config.HubBurst)
	if s.hub, err = s.newHub(s.mgr, config, name, s.versions.Note); err != nil {
		return err
	}
	if !s.config.Duties.Registration {
		return nil
	}
	leases, err := coordinationv1client.NewForConfigAndClient(config, s.hub.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("building the client of the heartbeat: %w", err)
	}
	s.heartbeat = &agentcluster.Heartbeat{
		Leases: leases.Leases(name), Cluster: name, Clock: s.clock,
		OnFailure: func(text string) { s.state.Note(noteHeartbeat, text) },
	}
	if s.watchdog != nil {
		s.heartbeat.Leases = s.watchdog.Leases(s.heartbeat.Leases)
	}
	return nil
}

// runnables returns the Runnables that start with the phase, before the reconcilers.
func (s *serving) runnables() []manager.Runnable {
	list := []manager.Runnable{s.keeper, manager.RunnableFunc(s.admit)}
	if s.watchdog != nil {
		list = append(list, s.watchdog)
	}
	return list
}

// resetWatchdog takes any response of the hub as a sign of life until there are heartbeats.
func (s *serving) resetWatchdog() {
	if !s.admitted.Load() {
		s.watchdog.Reset()
	}
}

// rejectedSince ends the phase because the hub rejects the credential, if there is a bootstrap kubeconfig to join again
// with. Else the agent reports that, and goes on.
func (s *serving) rejectedSince(since time.Time) {
	why := fmt.Sprintf("hub %s answers nothing but 401 Unauthorized to the certificate since %s", s.target.Server.Server,
		since.UTC().Format(time.RFC3339))
	switch {
	case s.watcher == nil:
		why += ": the registration agent has to join again"
	case bootstrap.AnyUsable(s.watcher.Latest()):
		current := s.keeper.latest()
		s.rejected.Store(&current)
		s.end(phaseOverError(why))
		return
	default:
		why += ", and there is no bootstrap kubeconfig to join again with: " + bootstrap.Problems(s.watcher.Latest())
	}
	if s.state.Set(why) {
		s.mgr.GetLogger().Info("the hub refuses the certificate", "reason", why)
	}
}

// acceptedAgain resets the state when the hub accepts the credential again.
func (s *serving) acceptedAgain() {
	if s.admitted.Load() {
		s.state.Set(health.Ready)
	}
}

// admit is a Runnable that polls until the hub has accepted the cluster, because the cluster may not watch anything
// before. Then it detects the version of add-ons that the hub serves, and adds all reconcilers.
func (s *serving) admit(ctx context.Context) error {
	if !s.accepted(ctx) {
		return nil
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
	s.state.Set(health.Ready)
	return nil
}

// accepted polls until the hub has accepted the cluster, and reports whether it did: the phase may be over before, and
// knows why.
func (s *serving) accepted(ctx context.Context) bool {
	logger := ctrl.LoggerFrom(ctx)
	wait := firstPoll
	for {
		err := s.poll(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if s.setWaiting(err) {
			logger.Info("not serving yet, looking again", "reason", err.Error())
		}
		s.sleep(ctx, pause.Spread(wait, pollSpread, s.credential.Identity.Cluster))
		wait = pause.Growing{First: firstPoll, Last: s.longestPause()}.Next(wait)
	}
}

// setWaiting sets the state to why nothing can serve yet, and reports whether that has to be logged: an outage of the
// hub is logged anyway. During one, the agent stands by: it has a credential, and can do no more until the hub
// responds.
func (s *serving) setWaiting(err error) (isNew bool) {
	text := "waiting for the hub: " + err.Error()
	if !s.state.Explains(err) {
		return s.state.Set(text)
	}
	if s.applier != nil && s.applier.Copies() > 0 {
		text = "waiting for the hub, looking after the works by their copies: " + err.Error()
	}
	s.state.StandBy(text)
	return false
}

// longestPause returns the longest pause between two polls: shorter when the certificate is about to expire, because an
// agent that waits does not renew it.
func (s *serving) longestPause() time.Duration {
	left := s.credential.NotAfter.Sub(s.hubClock.Now())
	return min(lastPoll, max(left/pollShare, time.Second))
}

// acceptance returns what is missing of the acceptance of a cluster; nil when nothing is. The hub sets the condition
// after it granted all rights, so nothing is forbidden from then on.
func acceptance(own *clusterv1.ManagedCluster) error {
	said := meta.FindStatusCondition(own.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	switch {
	case said != nil && said.Status == metav1.ConditionTrue:
		return nil
	case !own.Spec.HubAcceptsClient:
		return fmt.Errorf("ManagedCluster %s is not accepted: spec.hubAcceptsClient is false on the hub", own.Name)
	case said == nil:
		return fmt.Errorf("ManagedCluster %s is accepted by its spec, but has no condition %s: the hub manager sets it when "+
			"the cluster has its rights; does one run on the hub?", own.Name, clusterv1.ManagedClusterConditionHubAccepted)
	}
	return fmt.Errorf("ManagedCluster %s is accepted by its spec, but condition %s is %s: %s", own.Name, said.Type,
		said.Status, said.Message)
}

// poll returns why nothing can serve yet; nil when everything can.
func (s *serving) poll(ctx context.Context) error {
	name := s.credential.Identity.Cluster
	var own clusterv1.ManagedCluster
	if err := s.hub.GetAPIReader().Get(ctx, types.NamespacedName{Name: name}, &own); err != nil {
		return fmt.Errorf("reading ManagedCluster %s (has the hub accepted the cluster?): %w", name, err)
	}
	if s.config.Gates.MultipleHubs && bootstrap.Denied(&own) {
		s.end(phaseOverError("the hub denied the cluster"))
	}
	if err := acceptance(&own); err != nil {
		return err
	}
	if !s.config.Duties.Registration {
		return nil
	}
	var err error
	s.wire, err = addonapi.DetectAt(s.hub.GetConfig(), s.hub.GetHTTPClient())
	return err
}
