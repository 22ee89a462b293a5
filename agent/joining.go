package agent

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/csr"
)

// The pauses between two tries of a credential that the hub refused.
const firstTry, lastTry = time.Second, time.Minute

// tryTimeout is how long one such try may take.
const tryTimeout = 10 * time.Second

// join asks the hub for a credential with the bootstrap kubeconfig; it ends when there is one, when the hub takes the
// refused one again, or when the bootstrap kubeconfig changed.
func (a *agent) join(
	ctx context.Context, v view, boot bootstrap, id csr.Identity, refused *join.Credential,
) error {
	r := &report{state: &a.state, logger: ctrl.LoggerFrom(ctx), hub: boot.server.Server}
	r.progress("asking hub " + boot.server.Server + " for the certificate of cluster " + id.Cluster)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	config, err := clientcmd.RESTConfigFromKubeConfig(boot.kubeconfig)
	if err != nil {
		return fmt.Errorf("bootstrap kubeconfig %s: %w", boot.source, err)
	}
	config.UserAgent = userAgent
	wrapTransport(config, a.config.WrapTransport)
	config.Wrap(r.wrap)
	config.Wrap(a.hubTime.wrap)
	limit(config, a.config.HubQPS, a.config.HubBurst)
	mgr, err := a.newManager(ctx, "")
	if err != nil {
		return err
	}
	if a.config.Gates.MultipleHubs {
		quiet := newSilence(a.clock, a.config.HubTimeout, a.leave(boot, end))
		config.Wrap((&answers{clock: a.clock, heard: quiet.heard}).wrap)
		if err := mgr.Add(quiet); err != nil {
			return fmt.Errorf("adding the watch of the hub's silence: %w", err)
		}
	}
	hub, err := a.newHub(mgr, config, id.Cluster, "", nil)
	if err != nil {
		return err
	}
	reconciler := &join.Reconciler{
		Hub: hub, Agent: mgr, Namespace: a.config.Namespace, SecretName: a.config.HubSecret, Identity: id,
		Server: boot.server, Joining: true, ExpirationSeconds: a.certExpiration(), Cluster: a.clusterOptions(),
		Clock: a.clock, Ahead: a.hubTime.Ahead, OnProgress: r.progress,
		OnCredential: func(join.Credential) { end(phaseOverError("the hub issued a certificate")) },
	}
	if refused != nil {
		reconciler.Refused = refused.Pair.Certificate
		if err := a.tryAgain(mgr, *refused, end); err != nil {
			return err
		}
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := a.worksWithoutHub(ctx, mgr, boot.server.Server, id.Cluster); err != nil {
		return err
	}
	if err := a.setupPhase(mgr, a.newLookout(v, v.changed, end)); err != nil {
		return err
	}
	return finish(ctx, mgr)
}

// leave ends the phase at a hub of several that fell silent.
func (a *agent) leave(boot bootstrap, end context.CancelCauseFunc) func(since time.Time) {
	return func(since time.Time) {
		end(phaseOverError(fmt.Sprintf("hub %s is silent since %s, longer than %s", boot.server.Server,
			since.UTC().Format(time.RFC3339), a.config.HubTimeout)))
	}
}

// tryAgain tries the refused credential now and then while the agent joins anew, and ends the phase when the hub takes
// it.
func (a *agent) tryAgain(mgr ctrl.Manager, refused join.Credential, end context.CancelCauseFunc) error {
	connection, err := connectHub(refused, &answers{clock: a.clock, time: a.hubTime})
	if err != nil {
		return err
	}
	hub, err := rest.HTTPClientFor(connection.config(0, 0, a.config.WrapTransport))
	if err != nil {
		return fmt.Errorf("building the client that tries the stored credential: %w", err)
	}
	address, err := url.JoinPath(connection.server, "apis", clusterv1.GroupName, clusterv1.GroupVersion.Version,
		"managedclusters", refused.Identity.Cluster)
	if err != nil {
		return fmt.Errorf("building the address that tries the stored credential: %w", err)
	}
	p := &probe{hub: hub, address: address, clock: a.clock, close: connection.close, taken: func() {
		a.refused.Store(nil)
		end(phaseOverError("the hub takes the stored certificate again"))
	}}
	if err := mgr.Add(p); err != nil {
		return fmt.Errorf("adding the probe of the stored credential: %w", err)
	}
	return nil
}

// probe asks the hub with a growing pause whether it takes a credential. It is a Runnable of a phase's manager.
type probe struct {
	hub *http.Client
	// address is the ManagedCluster of the credential on the hub.
	address string
	clock   clock.Clock
	// taken is called once, when the hub took the credential; it must not block.
	taken, close func()
}

// Start implements manager.Runnable.
func (p *probe) Start(ctx context.Context) error {
	defer p.close()
	for pause := firstTry; ; pause = min(2*pause, lastTry) {
		timer := p.clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
		status, err := p.try(ctx)
		if err == nil && recognized(status) {
			p.taken()
			return nil
		}
		log.FromContext(ctx).V(1).Info("the hub does not take the stored certificate", "status", status, "error", err)
	}
}

// try asks once and returns the status of the answer.
func (p *probe) try(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address, http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := p.hub.Do(request)
	if err != nil {
		return 0, err
	}
	_ = answer.Body.Close()
	return answer.StatusCode, nil
}

// recognized reports whether an answer shows that the hub knows who asked, whatever it allows.
func recognized(status int) bool {
	return status == http.StatusOK || status == http.StatusForbidden || status == http.StatusNotFound
}

func (a *agent) certExpiration() *int32 {
	if a.config.CertExpirationSeconds == 0 {
		return nil
	}
	return &a.config.CertExpirationSeconds
}

// clusterOptions is what a new ManagedCluster says. Without a CA that can be read the addresses are told without one.
func (a *agent) clusterOptions() join.ClusterOptions {
	bundle := a.spoke.CAData
	if len(bundle) == 0 && a.spoke.CAFile != "" && len(a.config.ExternalServerURLs) > 0 {
		bundle, _ = os.ReadFile(a.spoke.CAFile)
	}
	return join.ClusterOptions{
		Annotations: a.config.ClusterAnnotations, ServerURLs: a.config.ExternalServerURLs, CABundle: bundle,
	}
}
