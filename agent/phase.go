package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/agent/bootstrap"
	"github.com/spokelet/spokelet/agent/credentialdir"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
)

// firstPause and lastPause bound the pause after a phase that failed.
const firstPause, lastPause = time.Second, time.Minute

// phaseOverError is the cause of a phase that ends by plan: the next choice follows at once.
type phaseOverError string

// Error returns why the phase ended.
func (p phaseOverError) Error() string { return string(p) }

// view is the input of the choice of a phase, and what was chosen.
type view struct {
	found []bootstrap.Candidate
	// stored is the Secret of the stored credential; nil when there is none.
	stored *corev1.Secret
	// target is the hub of the phase and id who the agent is there; both are empty while there is none.
	target bootstrap.Target
	id     csr.Identity
}

// storedServer returns the hub of the stored credential; nil if there is none or it cannot be used, so that only a
// bootstrap kubeconfig can help. A kubeconfig in a Secret names no files of the pod.
func (v view) storedServer() *issue.HubServer {
	if v.stored == nil {
		return nil
	}
	server, err := issue.ParseHubServer(v.stored.Data[csr.KeyKubeconfig])
	if err != nil || server.CAFile != "" {
		return nil
	}
	return &server
}

// changed returns the reason to choose again if a bootstrap kubeconfig changed; empty if none did.
func (v view) changed(now []bootstrap.Candidate) string {
	if bootstrap.Same(v.found, now) {
		return ""
	}
	return "the bootstrap kubeconfig changed"
}

// newWatcher returns the watcher of the inputs of a phase that was chosen by v. over returns why the phase has to end,
// given what the bootstrap kubeconfigs contain.
func (a *agent) newWatcher(
	v view, over func(now []bootstrap.Candidate) string, end context.CancelCauseFunc,
) *bootstrap.Watcher {
	return &bootstrap.Watcher{
		Sources: a.config.sources(), Candidates: v.found, Over: over, Spoke: a.spokeFile(), End: endPhase(end),
		Clock: a.clock, Poll: a.config.PollFiles,
	}
}

// spokeFile returns the kubeconfig of the managed cluster that this phase uses; nil outside hosted mode.
func (a *agent) spokeFile() *bootstrap.SpokeFile {
	if !a.hosted() {
		return nil
	}
	return &bootstrap.SpokeFile{Path: a.config.SpokeKubeconfig, Content: a.spokeRaw}
}

// endPhase returns a function that ends a phase by plan.
func endPhase(end context.CancelCauseFunc) func(reason string) {
	return func(reason string) { end(phaseOverError(reason)) }
}

// setupPhase adds what every phase of registration has to its manager.
func (a *agent) setupPhase(mgr ctrl.Manager, watcher *bootstrap.Watcher) error {
	if a.config.HubKubeconfigDir != "" {
		d := &credentialdir.Dir{Path: a.config.HubKubeconfigDir, Secret: a.hubSecret(), Client: mgr.GetClient()}
		if err := d.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return watcher.SetupWithManager(mgr)
}

// finish runs the manager of a phase and returns why the phase ended.
func finish(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.Start(ctx)
	var over phaseOverError
	var again againError
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &over):
		return over
	case errors.As(cause, &again):
		return again
	}
	if err != nil {
		return fmt.Errorf("running the phase: %w", err)
	}
	return nil
}

// sleep waits for the pause or the end of ctx.
func (a *agent) sleep(ctx context.Context, pause time.Duration) {
	if pause <= 0 {
		return
	}
	timer := a.clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// againError is the cause of a phase that ends because it waited for its pause: the next choice follows at once, and
// the next pause is longer.
type againError string

// Error returns why the phase waited.
func (a againError) Error() string { return string(a) }

// hubSecret names the Secret that keeps the agent's own credential.
func (a *agent) hubSecret() types.NamespacedName {
	return types.NamespacedName{Namespace: a.config.Namespace, Name: a.config.HubSecret}
}
