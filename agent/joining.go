package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/agent/bootstrap"
	"github.com/spokelet/spokelet/agent/hubconn"
	"github.com/spokelet/spokelet/agent/join"
)

// join requests a credential with the bootstrap kubeconfig. It ends when there is one, when the hub accepts the
// rejected one again, or when the bootstrap kubeconfig changes.
func (a *agent) join(ctx context.Context, v view, rejected *join.Credential) error {
	target, id := v.target, v.id
	r := &report{state: &a.state, logger: ctrl.LoggerFrom(ctx), hub: target.Server.Server}
	r.progress("asking hub " + target.Server.Server + " for the certificate of cluster " + id.Cluster)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	config, err := bootstrap.Parse(target.Kubeconfig)
	if err != nil {
		return fmt.Errorf("bootstrap kubeconfig %s: %w", target.Source, err)
	}
	config.UserAgent = userAgent
	wrapTransport(config, a.config.WrapTransport)
	config.Wrap(r.wrap)
	config.Wrap(a.hubClock.Wrap)
	limit(config, a.config.HubQPS, a.config.HubBurst)
	mgr, err := a.newManager(ctx)
	if err != nil {
		return err
	}
	if a.config.Gates.MultipleHubs {
		watchdog := a.newWatchdog(target, end)
		config.Wrap((&hubconn.Responses{Clock: a.clock, Answered: watchdog.Reset}).Wrap)
		if err := errors.Join(mgr.Add(watchdog), mgr.Add(a.newReturn(v, end))); err != nil {
			return fmt.Errorf("adding the watches of the hubs: %w", err)
		}
	}
	hub, err := a.newHub(mgr, config, id.Cluster, nil)
	if err != nil {
		return err
	}
	reconciler := &join.Reconciler{
		Hub: hub, Agent: mgr, Namespace: a.config.Namespace, SecretName: a.config.HubSecret, Identity: id,
		Server: target.Server, Joining: true, ExpirationSeconds: a.certExpiration(), Cluster: a.clusterOptions(),
		Clock: a.clock, Ahead: a.hubClock.Ahead, OnProgress: r.progress, Ends: a.certificates,
		OnCredential: func(join.Credential) { end(phaseOverError("the hub issued a certificate")) },
	}
	if rejected != nil {
		reconciler.Refused = rejected.Pair.Certificate
		if err := a.probeRejected(mgr, *rejected, end); err != nil {
			return err
		}
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return err
	}
	if r.keeps, err = a.worksWithoutHub(ctx, mgr, target.Server.Server, id.Cluster); err != nil {
		return err
	}
	if err := a.setupPhase(mgr, a.newWatcher(v, v.changed, end)); err != nil {
		return err
	}
	return finish(ctx, mgr)
}

// newWatchdog returns a watchdog that ends the phase at a hub of several that does not respond for too long.
func (a *agent) newWatchdog(target bootstrap.Target, end context.CancelCauseFunc) *hubconn.Watchdog {
	return hubconn.NewWatchdog(a.clock, a.config.HubTimeout, func(since time.Time) {
		end(phaseOverError(fmt.Sprintf("hub %s is silent since %s, longer than %s", target.Server.Server,
			since.UTC().Format(time.RFC3339), a.config.HubTimeout)))
	})
}

// newReturn returns what ends the phase when a hub that comes before the one that is joined can be joined again.
func (a *agent) newReturn(v view, end context.CancelCauseFunc) *bootstrap.Return {
	return &bootstrap.Return{
		Selector: a.selector, Candidates: v.found, Stored: v.storedServer(), Joining: v.target.Server, Cluster: v.id.Cluster,
		Clock: a.clock, End: endPhase(end),
	}
}

// probeRejected tries the rejected credential now and then while the agent joins again, and ends the phase when the hub
// accepts it.
func (a *agent) probeRejected(mgr ctrl.Manager, rejected join.Credential, end context.CancelCauseFunc) error {
	connection, err := hubconn.Connect(rejected.Server, rejected.Pair, hubconn.Observers{
		Responses: &hubconn.Responses{Clock: a.clock}, Clock: a.hubClock,
	})
	if err != nil {
		return err
	}
	probe, err := connection.NewProbe(rejected.Identity.Cluster, a.config.WrapTransport, a.clock, func() {
		a.rejected.Store(nil)
		end(phaseOverError("the hub takes the stored certificate again"))
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(probe); err != nil {
		return fmt.Errorf("adding the probe of the stored credential: %w", err)
	}
	return nil
}

func (a *agent) certExpiration() *int32 {
	if a.config.CertExpirationSeconds == 0 {
		return nil
	}
	return &a.config.CertExpirationSeconds
}

// clusterOptions returns the content of a new ManagedCluster. If the CA cannot be read, the addresses go without one.
func (a *agent) clusterOptions() join.ClusterOptions {
	bundle := a.spoke.CAData
	if len(bundle) == 0 && a.spoke.CAFile != "" && len(a.config.ExternalServerURLs) > 0 {
		bundle, _ = os.ReadFile(a.spoke.CAFile)
	}
	return join.ClusterOptions{
		Annotations: a.config.ClusterAnnotations, ServerURLs: a.config.ExternalServerURLs, CABundle: bundle,
	}
}
