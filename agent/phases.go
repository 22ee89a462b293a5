package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/agent/bootstrap"
	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/pause"
)

// pacing is the sequence of pauses between phases.
type pacing struct {
	// next is the pause after the next phase that fails; zero means the first one.
	next time.Duration
	// early counts the phases that ended by plan after a short time.
	early int
}

// freeEnds is how many phases in a row may end by plan within a minute without a pause: to join takes some, and a
// person who tries kubeconfigs changes them now and then.
const freeEnds = 5

// pause returns the pause for a phase that fails now.
func (p *pacing) pause() time.Duration { return max(p.next, firstPause) }

// failed takes a phase that failed, and whose pause is over.
func (p *pacing) failed(lasted time.Duration) {
	if p.next = pauses().Next(p.pause()); lasted > 2*lastPause {
		p.next = firstPause
	}
}

// planned takes a phase that ended by plan, and returns the pause after it. It is none unless phases end all the time,
// which is a mistake: whatever ended them did not change what the next one was chosen by.
func (p *pacing) planned(lasted time.Duration) time.Duration {
	if lasted >= lastPause {
		*p = pacing{}
		return 0
	}
	if p.early++; p.early <= freeEnds {
		p.next = 0
		return 0
	}
	now := p.pause()
	p.next = pauses().Next(now)
	return now
}

// pauses are those between phases.
func pauses() pause.Growing { return pause.Growing{First: firstPause, Last: lastPause} }

// runPhases runs one phase after the other until ctx ends.
func (a *agent) runPhases(ctx context.Context) error { return a.repeat(ctx, a.phase) }

// repeat runs a phase again and again until ctx ends, with pauses.
func (a *agent) repeat(ctx context.Context, phase func(ctx context.Context, pause time.Duration) error) error {
	var pauses pacing
	for ctx.Err() == nil {
		began := a.clock.Now()
		err := phase(ctx, pauses.pause())
		logger := ctrl.LoggerFrom(ctx)
		var over phaseOverError
		var again againError
		switch {
		case ctx.Err() != nil:
		case errors.As(err, &over):
			pause := pauses.planned(a.clock.Since(began))
			logger.Info("choosing again", "reason", over.Error(), "pause", pause.String())
			a.sleep(ctx, pause)
		case errors.As(err, &again):
			pauses.failed(a.clock.Since(began))
		default:
			if err == nil {
				err = errors.New("the phase ended by itself")
			}
			logger.Error(err, "trying again", "pause", pauses.pause().String())
			a.state.Set("trying again: " + err.Error())
			a.sleep(ctx, pauses.pause())
			pauses.failed(a.clock.Since(began))
		}
	}
	return nil
}

// phase chooses a phase by the bootstrap kubeconfigs and the stored credential, and runs it. If time alone may change
// the choice, it waits for the pause.
func (a *agent) phase(ctx context.Context, pause time.Duration) error {
	defer a.state.FollowAccount(nil) // the next phase asks for a token of its own
	if !a.config.Duties.Registration {
		return a.memberPhase(ctx)
	}
	found, err := bootstrap.ReadAll(ctx, a.config.sources(), a.live)
	if err != nil {
		return err
	}
	stored, err := a.storedCredential(ctx)
	if err != nil {
		return err
	}
	v := view{found: found, stored: stored}
	if err := a.connectSpoke(ctx); err != nil {
		return a.await(ctx, v, err.Error(), 0)
	}
	if !bootstrap.AnyUsable(found) && v.storedServer() == nil {
		return a.await(ctx, v, bootstrap.Problems(found), 0)
	}
	id, err := join.Identify(ctx, a.live, a.hubSecret(), csr.Identity{
		Cluster: a.config.ClusterName, Agent: a.config.AgentID,
	})
	if err != nil {
		return fmt.Errorf("finding out who this agent is: %w", err)
	}
	target, why := a.selectHub(ctx, v, id.Cluster)
	if target.Server.Server == "" {
		return a.await(ctx, v, why, pause)
	}
	v.target, v.id = target, id
	return a.act(ctx, v, why, pause)
}

// selectHub returns the hub of this phase; without a server there is none, and why is the reason. One bootstrap
// kubeconfig leaves no choice: if it cannot be used, the stored credential leads.
func (a *agent) selectHub(ctx context.Context, v view, clusterName string) (target bootstrap.Target, why string) {
	stored := v.storedServer()
	if a.config.Gates.MultipleHubs {
		pair := issue.PairOf(v.stored)
		credential := bootstrap.Stored{Server: stored, Valid: stored != nil && !issue.IsExpired(pair, a.hubClock.Now())}
		return a.selector.Select(ctx, v.found, credential, clusterName)
	}
	if one := v.found[0]; one.Problem == nil {
		return one.Target, ""
	}
	if stored != nil {
		target.Server = *stored
	}
	return target, bootstrap.Problems(v.found)
}

// act serves with the stored credential of the selected hub if it can be used, else joins if there is a bootstrap
// kubeconfig, else waits.
func (a *agent) act(ctx context.Context, v view, why string, pause time.Duration) error {
	target, id := v.target, v.id
	a.hubClock.Query(ctx, target.Server, issue.PairOf(v.stored), a.config.WrapTransport)
	facts := join.Facts{Server: target.Server, Identity: id, Now: a.hubClock.Now()}
	rejected := a.rejected.Load()
	if rejected != nil && target.Kubeconfig != nil {
		facts.Refused = rejected.Pair.Certificate
	}
	credential, verdict, err := join.Prepare(ctx, a.live, a.hubSecret(), facts)
	if err != nil {
		return fmt.Errorf("looking at the stored credential: %w", err)
	}
	logger := ctrl.LoggerFrom(ctx).WithValues("cluster", id.Cluster, "hub", target.Server.Server)
	ctx = ctrl.LoggerInto(ctx, logger)
	switch {
	case verdict.Valid():
		if why != "" {
			logger.Info("serving with the stored credential, but there is no way to join again", "reason", why)
		}
		logger.Info("serving", "agent", id.Agent, "certificateExpires", credential.NotAfter)
		return a.serve(ctx, v, credential)
	case target.Kubeconfig == nil:
		if !a.config.Gates.MultipleHubs {
			pause = 0 // nothing but a change helps
		}
		return a.await(ctx, v, why+"; the stored credential cannot be used: "+verdict.Message, pause)
	}
	logger.Info("joining", "agent", id.Agent, "reason", verdict.Message)
	if verdict.Reason != join.ReasonRefused {
		rejected = nil
	}
	return a.join(ctx, v, rejected)
}

func (a *agent) storedCredential(ctx context.Context) (*corev1.Secret, error) {
	var secret corev1.Secret
	switch err := a.live.Get(ctx, a.hubSecret(), &secret); {
	case apierrors.IsNotFound(err):
		return nil, nil // no credential is a good answer
	case err != nil:
		return nil, fmt.Errorf("reading the stored credential %s: %w", a.hubSecret(), err)
	}
	return &secret, nil
}

// await waits until an input of the choice changes, but no longer than the pause unless that is zero. Where a hub
// is chosen it keeps the works of the stored credential meanwhile, by their offline copies.
func (a *agent) await(ctx context.Context, v view, why string, pause time.Duration) error {
	if a.state.Set("waiting: " + why) {
		ctrl.LoggerFrom(ctx).Info("waiting", "reason", why)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if pause > 0 {
		defer a.clock.AfterFunc(pause, func() { end(againError(why)) }).Stop()
	}
	mgr, err := a.newManager(ctx)
	if err != nil {
		return err
	}
	watcher := a.newWatcher(v, v.changed, end)
	watcher.Credential = &bootstrap.StoredCredential{Key: a.hubSecret()}
	if v.stored != nil {
		watcher.Credential.Data = v.stored.Data
	}
	if server := v.storedServer(); v.id.Cluster != "" && server != nil {
		if _, err := a.worksWithoutHub(ctx, mgr, server.Server, v.id.Cluster); err != nil {
			return err
		}
	}
	if err := a.setupPhase(mgr, watcher); err != nil {
		return err
	}
	return finish(ctx, mgr)
}
