package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/expiry"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// serve gets the credential of each registration; a failure of one does not stop the others.
func (r *Reconciler) serve(ctx context.Context, f facts, p plan) []result {
	results := make([]result, 0, len(p.serve))
	for _, reg := range p.serve {
		s := &serving{Reconciler: r, facts: f, place: p.place, reg: reg}
		if reg.account != nil {
			results = append(results, s.serveToken(ctx))
			continue
		}
		results = append(results, s.serveCertificate(ctx))
	}
	return results
}

func lifeOf(v issue.PairVerdict) causes.Life { return causes.Life{From: v.NotBefore, To: v.NotAfter} }

// tellEnds tells when the certificates of an add-on end. What could not be read is as it was.
func (r *Reconciler) tellEnds(name string, results []result) {
	var lives []causes.Life
	for i := range results {
		if results[i].unread {
			return
		}
		lives = append(lives, results[i].life)
	}
	r.Ends.Set(expiry.AddOn, name, lives...)
}

// serving holds the inputs with which a pass serves one registration.
type serving struct {
	*Reconciler

	// facts has the times of the last look at the clocks.
	facts facts
	place place
	reg   registration
}

// serveCertificate does the next step for a registration that gets a certificate.
func (s *serving) serveCertificate(ctx context.Context) result {
	var have stored
	issuer := issue.Issuer{
		Hub: s.Hub.GetClient(), HubLive: s.Hub.GetAPIReader(), HubSeen: s.requests,
		Agent: s.Agent.GetClient(), AgentLive: s.Agent.GetAPIReader(),
		Namespace: s.Namespace, Secret: s.SecretName, HubName: s.Server.Name(), User: s.User,
	}
	answer, err := issuer.Ask(ctx, issue.Task{
		Now: s.facts.hubNow(), Want: s.reg.request,
		Load: func(ctx context.Context, live bool) (issue.Pair, bool, error) {
			var err error
			if have, err = s.load(ctx, live); err != nil || have.secret == nil {
				return issue.Pair{}, false, err
			}
			return issue.PairOf(have.secret), have.renew, nil
		},
	})
	look := s.facts.toLocal(issue.LookAtClock(s.facts.ahead, s.facts.hubNow(), answer.Wake))
	answer.Wake = s.facts.toLocal(answer.Wake)
	answer.Condition = issue.WithClockNote(answer.Condition, s.facts.ahead)
	res := newResult(s.reg)
	res.condition, res.awaited = answer.Condition, answer.Awaited
	verdict := issue.JudgePair(issue.PairOf(have.secret), s.reg.request, s.facts.hubNow())
	res.life, res.unread = lifeOf(verdict), err != nil && have.secret == nil
	if answer.Urgent {
		res.deadline = answer.Wake
	}
	res.outcome = reconcile.RetryBy(ctx, err, res.deadline).And(reconcile.DoneUntil(reconcile.Earliest(answer.Wake, look)))
	if foreign := (foreignError{}); errors.As(err, &foreign) {
		return res.belongsToOthers(foreign)
	}
	if err != nil {
		return res
	}
	if answer.Step == issue.StepStart {
		log.FromContext(ctx).Info("asked the hub for a certificate", "signer", s.reg.request.Signer)
	}
	if answer.Step == issue.StepTake {
		return s.take(ctx, issuer, have, answer)
	}
	if have.secret == nil || have.renew {
		return res
	}
	if !verdict.Fits {
		return res
	}
	res.served = true
	return res.failed(s.store(ctx, have.secret, credential{pair: issue.PairOf(have.secret)}))
}

// take stores a new certificate, or keeps it with its pending key while its namespace is missing.
func (s *serving) take(ctx context.Context, issuer issue.Issuer, have stored, answer issue.Answer) result {
	res := newResult(s.reg)
	res.condition, res.outcome = answer.Condition, reconcile.DoneUntil(answer.Wake)
	res.life = lifeOf(issue.JudgePair(issue.PairOf(have.secret), s.reg.request, s.facts.hubNow())) // until it is replaced
	absent := s.namespaceAbsent(s.place)
	var err error
	if !absent {
		err = s.store(ctx, have.secret, credential{pair: answer.Pair})
		absent = have.secret == nil && isNamespaceMissing(err)
	}
	if absent {
		res.missing = s.place.namespace
		res = res.withFailure(fmt.Sprintf("namespace %s of the add-on agent does not exist or is being deleted on "+
			"the cluster: the certificate is kept and stored as soon as the namespace is there", s.place.namespace))
		res.outcome = res.outcome.And(s.awaitNamespace(s.place, s.facts.now)).And(s.restoreNamespace(ctx))
		return res.failed(issuer.Keep(ctx, answer))
	}
	if err != nil {
		return res.failed(err)
	}
	log.FromContext(ctx).Info("stored a certificate", "secret", s.reg.secret, "rotateAt", answer.Wake)
	res.served, res.life = true, lifeOf(issue.JudgePair(answer.Pair, s.reg.request, s.facts.hubNow()))
	if err := issuer.Finish(ctx, answer); err != nil {
		res.outcome = res.outcome.And(reconcile.FromError(err))
	}
	return res
}

// namespaceAbsent reports whether the namespace of the add-on agent was observed to be absent.
func (r *Reconciler) namespaceAbsent(p place) bool {
	seen := r.watch.get(target{side: p.side, kind: kindNamespace, name: p.namespace})
	return seen.known && seen.object == nil
}

// namespacePause is the time after which a namespace that is missing and may not be watched is looked at again.
const namespacePause = time.Minute

// awaitNamespace returns when to look again for the namespace of the add-on agent if it may not be watched. The first
// refusal causes a pass.
func (r *Reconciler) awaitNamespace(p place, now time.Time) reconcile.Outcome {
	seen := r.watch.get(target{side: p.side, kind: kindNamespace, name: p.namespace})
	if seen.refused == nil {
		return reconcile.Outcome{}
	}
	return reconcile.DoneUntil(now.Add(namespacePause))
}

// isNamespaceMissing reports whether a Secret could not be created because its namespace is missing or being deleted.
func isNamespaceMissing(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// remove deletes the Secrets that the plan no longer needs. An obsolete Secret is deleted once all credentials are
// served, and once the API server has shown that the plan is about the present add-on.
func (r *Reconciler) remove(ctx context.Context, f facts, p plan, results []result) error {
	agent := types.NamespacedName{Namespace: r.Namespace, Name: r.SecretName}
	unwanted := slices.DeleteFunc(slices.Clone(f.secrets), func(s ownedSecret) bool {
		return !obsolete(s, agent, p, results)
	})
	if len(unwanted) == 0 {
		return nil
	}
	if err := r.confirm(ctx, f, p); err != nil {
		return fmt.Errorf("making sure that add-on %s needs %d of its secrets no more: %w", f.name, len(unwanted), err)
	}
	var errs []error
	for _, s := range unwanted {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
		uid := s.uid
		err := r.sides[s.side].GetClient().Delete(ctx, secret, client.Preconditions{UID: &uid})
		switch {
		case err == nil:
			log.FromContext(ctx).Info("removed a secret that no add-on needs", "secret", s.key)
		case !apierrors.IsNotFound(err):
			errs = append(errs, fmt.Errorf("removing secret %s: %w", s.key, err))
		}
	}
	return errors.Join(errs...)
}

// confirm returns an error if the plan is not what the add-on on the API server leads to: a cache may show what it was
// before, with other registrations or with none. That an add-on is gone was confirmed when it was observed.
func (r *Reconciler) confirm(ctx context.Context, f facts, p plan) error {
	if f.addon == nil {
		return nil
	}
	live, err := r.addons.GetAddOnFrom(ctx, r.Hub.GetAPIReader(), client.ObjectKeyFromObject(f.addon))
	if err != nil {
		return err
	}
	now := f
	now.addon = live
	if !sameSecrets(p, decide(now)) {
		return reconcile.Behind(addonv1beta1.GroupName, "managedclusteraddons", f.name)
	}
	return nil
}

// sameSecrets reports whether two plans need the same Secrets. It is pure.
func sameSecrets(a, b plan) bool {
	return a.remove == b.remove && a.place == b.place && a.waits == b.waits && len(a.refused) == len(b.refused) &&
		slices.EqualFunc(a.serve, b.serve, func(a, b registration) bool {
			return a.secret == b.secret && (a.account == nil) == (b.account == nil) &&
				equality.Semantic.DeepEqual(a.request, b.request)
		})
}

// obsolete reports whether to delete a Secret of ours; agent is the Secret of the agent's own credential. It is pure.
func obsolete(s ownedSecret, agent types.NamespacedName, p plan, results []result) bool {
	switch p.remove {
	case removeNone:
		return false
	case removeAll:
		return true
	case removeStale:
	}
	unserved := func(res result) bool { return !res.served }
	if p.waits || len(p.refused) > 0 || slices.ContainsFunc(results, unserved) {
		return false
	}
	return !slices.ContainsFunc(p.serve, func(reg registration) bool {
		if s.pending {
			return s.on(sideAgent) && s.key.Namespace == agent.Namespace && (s.key.Name == issue.PendingName(
				reg.request, agent.Name) || s.key.Name == issue.PendingName(reg.request, ""))
		}
		return s.on(p.place.side) && s.key == reg.secret
	})
}

// publish writes the status in one patch.
func (r *Reconciler) publish(ctx context.Context, f facts, p plan, results []result) error {
	if f.addon == nil {
		return nil
	}
	_, err := r.addons.PatchAddOnStatus(ctx, f.addon, conclude(f, p, results))
	return err
}

// outcomeOf joins the outcomes of all registrations, the wake time of the health and other failures.
func outcomeOf(ctx context.Context, p plan, results []result, failures ...error) reconcile.Outcome {
	outcome := reconcile.DoneUntil(p.wake)
	var deadline time.Time
	for _, res := range results {
		outcome, deadline = outcome.And(res.outcome), reconcile.Earliest(deadline, res.deadline)
	}
	for _, err := range failures {
		outcome = outcome.And(reconcile.RetryBy(ctx, err, deadline))
	}
	return outcome
}
