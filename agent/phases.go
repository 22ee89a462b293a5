package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/csr"
)

const (
	// firstPause and lastPause bound the pause after a phase that failed.
	firstPause, lastPause = time.Second, time.Minute
	// bootstrapPause is the pause between two looks for a bootstrap kubeconfig that is not there.
	bootstrapPause = 5 * time.Second
)

// phaseOverError is the cause with which a phase ends by plan: the next choice follows at once.
type phaseOverError string

// Error says why the phase ended.
func (p phaseOverError) Error() string { return string(p) }

// runPhases runs one phase after the other until ctx ends.
func (a *agent) runPhases(ctx context.Context) error {
	pause := firstPause
	for ctx.Err() == nil {
		began := a.clock.Now()
		failed := a.runPhase(ctx, pause)
		if !failed || a.clock.Since(began) > 2*lastPause {
			pause = firstPause
			continue
		}
		pause = min(2*pause, lastPause)
	}
	return nil
}

// runPhase runs one phase. After one that failed it waits for the pause and returns true.
func (a *agent) runPhase(ctx context.Context, pause time.Duration) (failed bool) {
	err := a.phase(ctx)
	logger := ctrl.LoggerFrom(ctx)
	var over phaseOverError
	switch {
	case ctx.Err() != nil:
		return false
	case errors.As(err, &over):
		logger.Info("choosing anew", "reason", over.Error())
		return false
	case err == nil:
		err = errors.New("the phase ended by itself")
	}
	logger.Error(err, "trying again", "pause", pause.String())
	a.state.set("trying again: " + err.Error())
	sleep(ctx, pause)
	return true
}

// phase chooses by the stored credential what to do, and does it.
func (a *agent) phase(ctx context.Context) error {
	id, err := join.Identify(ctx, a.live, a.config.Namespace, csr.Identity{
		Cluster: a.config.ClusterName, Agent: a.config.AgentID,
	})
	if err != nil {
		return fmt.Errorf("finding out who this agent is: %w", err)
	}
	boot, err := a.findHub(ctx)
	if err != nil {
		return err
	}
	credential, verdict, err := join.Prepare(ctx, a.live, a.config.Namespace, boot.server, id, a.clock.Now())
	if err != nil {
		return fmt.Errorf("looking at the stored credential: %w", err)
	}
	logger := ctrl.LoggerFrom(ctx).WithValues("cluster", id.Cluster, "hub", boot.server.Server)
	if verdict.Valid() {
		logger.Info("serving", "agent", id.Agent, "certificateExpires", credential.NotAfter)
		return a.serve(ctrl.LoggerInto(ctx, logger), boot, credential)
	}
	if boot.kubeconfig == nil {
		logger.Info("waiting for a bootstrap kubeconfig "+a.bootstrap.String(), "reason", verdict.Message)
		return a.awaitBootstrap(ctx)
	}
	logger.Info("joining", "agent", id.Agent, "reason", verdict.Message)
	return a.join(ctrl.LoggerInto(ctx, logger), boot, id)
}

// awaitBootstrap returns when there is a bootstrap kubeconfig.
func (a *agent) awaitBootstrap(ctx context.Context) error {
	a.state.set("waiting for a bootstrap kubeconfig " + a.bootstrap.String())
	for ctx.Err() == nil {
		kubeconfig, err := a.bootstrap.read(ctx, a.live)
		switch {
		case err != nil:
			return err
		case kubeconfig != nil:
			return phaseOverError("there is a bootstrap kubeconfig " + a.bootstrap.String())
		}
		sleep(ctx, bootstrapPause)
	}
	return nil
}

// findHub reads the bootstrap kubeconfig; where there is none, the stored credential tells which hub it is for.
func (a *agent) findHub(ctx context.Context) (bootstrap, error) {
	kubeconfig, err := a.bootstrap.read(ctx, a.live)
	if err != nil {
		return bootstrap{}, err
	}
	if kubeconfig != nil {
		return a.bootstrap.parse(kubeconfig)
	}
	stored := bootstrapSource{secret: a.bootstrap.secret}
	stored.secret.Name = a.config.HubSecret
	if kubeconfig, err = stored.readSecret(ctx, a.live); err != nil || kubeconfig == nil {
		return bootstrap{}, err
	}
	server, err := csr.ParseHubServer(kubeconfig)
	if err != nil {
		// Without a bootstrap kubeconfig nothing can replace it, and with one it would be replaced: so it is waited for.
		return bootstrap{}, nil //nolint:nilerr // told as the verdict on the stored credential
	}
	return bootstrap{server: server}, nil
}

// join asks the hub for a credential with the bootstrap kubeconfig; it ends when there is one.
func (a *agent) join(ctx context.Context, boot bootstrap, id csr.Identity) error {
	a.state.set("joining: waiting until the hub approves the certificate request of cluster " + id.Cluster)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	config, err := clientcmd.RESTConfigFromKubeConfig(boot.kubeconfig)
	if err != nil {
		return fmt.Errorf("bootstrap kubeconfig %s: %w", a.bootstrap, err)
	}
	config.UserAgent = userAgent
	limit(config, a.config.HubQPS, a.config.HubBurst)
	mgr, err := a.newManager(ctx, "")
	if err != nil {
		return err
	}
	hub, err := a.newHub(mgr, config, id.Cluster)
	if err != nil {
		return err
	}
	reconciler := &join.Reconciler{
		Hub: hub, Agent: mgr, Namespace: a.config.Namespace, Identity: id, Server: boot.server, Joining: true,
		ExpirationSeconds: a.certExpiration(), Cluster: a.clusterOptions(), Clock: a.clock,
		OnCredential: func(join.Credential) { end(phaseOverError("the hub issued a certificate")) },
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := a.bootstrap.watch(mgr, boot.kubeconfig, end); err != nil {
		return err
	}
	return finish(ctx, mgr)
}

// finish runs the manager of a phase and returns why the phase ended.
func finish(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.Start(ctx)
	var over phaseOverError
	if cause := context.Cause(ctx); errors.As(cause, &over) {
		return over
	}
	if err != nil {
		return fmt.Errorf("running the phase: %w", err)
	}
	return nil
}

func (a *agent) certExpiration() *int32 {
	if a.config.CertExpirationSeconds == 0 {
		return nil
	}
	return &a.config.CertExpirationSeconds
}

func (a *agent) clusterOptions() join.ClusterOptions {
	return join.ClusterOptions{
		Annotations: a.config.ClusterAnnotations, ServerURLs: a.config.ExternalServerURLs, CABundle: a.spoke.CAData,
	}
}

// sleep waits for the pause or the end of ctx.
func sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
