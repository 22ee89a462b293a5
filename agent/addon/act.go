package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// result is what came of one registration.
type result struct {
	signer string
	// condition is what to tell; nil when there is nothing yet.
	condition *metav1.Condition
	// served tells that a good credential is in its Secret.
	served bool
	// missing is the namespace that the Secret waits for; empty when it does not wait.
	missing string
	outcome reconcile.Outcome
}

// serve gets the credential of each registration; one that fails does not stop the others.
func (r *Reconciler) serve(ctx context.Context, f facts, p plan) []result {
	results := make([]result, 0, len(p.serve))
	for _, reg := range p.serve {
		res := r.serveOne(ctx, f, p.place, reg)
		res.signer = reg.request.Signer
		results = append(results, res)
	}
	return results
}

// serveOne does the next step for one registration.
func (r *Reconciler) serveOne(ctx context.Context, f facts, p place, reg registration) result {
	var have stored
	issuer := csr.Issuer{
		Hub: r.Hub.GetClient(), HubLive: r.Hub.GetAPIReader(),
		Agent: r.Agent.GetClient(), AgentLive: r.Agent.GetAPIReader(),
		Namespace: r.Namespace, HubName: r.Server.Name(),
	}
	answer, err := issuer.Ask(ctx, csr.Task{
		Standing: csr.Standing{Now: f.now, Want: reg.request},
		Load: func(ctx context.Context, live bool) (csr.Pair, bool, error) {
			var err error
			if have, err = r.load(ctx, f, p.side, reg, live); err != nil || have.secret == nil {
				return csr.Pair{}, false, err
			}
			return csr.PairOf(have.secret.Data), have.renew, nil
		},
	})
	res := result{condition: answer.Condition, outcome: reconcile.FromError(err).And(reconcile.DoneUntil(answer.Wake))}
	if foreign := (foreignError{}); errors.As(err, &foreign) {
		res.condition = csr.NotStored(foreign.Error())
	}
	if err != nil {
		return res
	}
	if answer.Step == csr.StepStart {
		log.FromContext(ctx).Info("asked the hub for a certificate", "signer", reg.request.Signer)
	}
	if answer.Step == csr.StepTake {
		return r.take(ctx, issuer, f, p, reg, have, answer)
	}
	if have.secret == nil || have.renew {
		return res
	}
	pair := csr.PairOf(have.secret.Data)
	if !csr.JudgePair(pair, reg.request, f.now).Fits {
		return res
	}
	res.served = true
	return res.failed(r.store(ctx, f, p, reg, have.secret, pair))
}

// take stores a new certificate, or keeps it aside while its namespace is missing.
func (r *Reconciler) take(
	ctx context.Context, issuer csr.Issuer, f facts, p place, reg registration, have stored, answer csr.Answer,
) result {
	res := result{condition: answer.Condition, outcome: reconcile.DoneUntil(answer.Wake)}
	namespace := target{side: p.side, name: p.namespace}
	seen := r.watch.look(namespace)
	absent := seen.known && seen.object == nil
	var err error
	if !absent {
		err = r.store(ctx, f, p, reg, have.secret, answer.Pair)
		absent = have.secret == nil && isNamespaceMissing(err)
	}
	if absent {
		res.missing = p.namespace
		res.condition = csr.NotStored(fmt.Sprintf("namespace %s of the add-on agent does not exist or is being deleted on "+
			"the cluster: the certificate is kept and stored as soon as the namespace is there", p.namespace))
		return res.failed(issuer.Keep(ctx, answer))
	}
	if err != nil {
		return res.failed(err)
	}
	log.FromContext(ctx).Info("stored a certificate", "secret", reg.secret, "rotateAt", answer.Wake)
	res.served = true
	if err := issuer.Finish(ctx, answer); err != nil {
		res.outcome = res.outcome.And(reconcile.FromError(err))
	}
	return res
}

// failed returns the result with an error taken into account: what could not be stored is not called served.
func (res result) failed(err error) result {
	if err == nil {
		return res
	}
	res.served = false
	if res.missing == "" {
		res.condition = nil
		if !reconcile.IsLostRace(err) {
			res.condition = csr.NotStored(err.Error())
		}
	}
	res.outcome = res.outcome.And(reconcile.FromError(err))
	return res
}

// isNamespaceMissing tells whether a Secret could not be created because its namespace is not there or going away.
func isNamespaceMissing(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// store writes the credential Secret unless it is as it should be. A Secret of that name which is not ours yet becomes
// ours, as it does with every other agent.
func (r *Reconciler) store(
	ctx context.Context, f facts, p place, reg registration, seen *corev1.Secret, pair csr.Pair,
) error {
	c := r.sides[p.side].GetClient()
	if seen == nil {
		secret, err := r.fill(f, reg, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: reg.secret.Namespace, Name: reg.secret.Name},
		}, pair)
		if err != nil {
			return err
		}
		err = c.Create(ctx, secret)
		if !apierrors.IsAlreadyExists(err) {
			return wrapStore(err, reg)
		}
		return r.adopt(ctx, f, p, reg, pair, err)
	}
	secret, err := r.fill(f, reg, seen, pair)
	if err != nil || equality.Semantic.DeepEqual(secret, seen) {
		return err
	}
	return wrapStore(c.Update(ctx, secret), reg)
}

// adopt takes over a Secret that stands where ours should be and that our cache does not show, because it has no labels
// of ours. One that has them is only news that the cache does not know yet.
func (r *Reconciler) adopt(
	ctx context.Context, f facts, p place, reg registration, pair csr.Pair, exists error,
) error {
	have, err := r.load(ctx, f, p.side, reg, true)
	if err != nil {
		return err
	}
	if have.secret == nil || have.secret.Labels[names.LabelCredential] != "" {
		return wrapStore(exists, reg)
	}
	return r.store(ctx, f, p, reg, have.secret, pair)
}

func wrapStore(err error, reg registration) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("storing the credential in secret %s: %w", reg.secret, err)
}

// fill returns a copy of a Secret with the credential and all that belongs beside it. Unknown keys stay.
func (r *Reconciler) fill(f facts, reg registration, seen *corev1.Secret, pair csr.Pair) (*corev1.Secret, error) {
	secret := seen.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[csr.KeyClusterName] = []byte(f.cluster)
	secret.Data[csr.KeyCertificate], secret.Data[csr.KeyPrivateKey] = pair.Certificate, pair.Key
	if reg.kubeconfig && !r.Server.Describes(secret.Data[csr.KeyKubeconfig]) {
		kubeconfig, err := r.Server.Kubeconfig()
		if err != nil {
			return nil, err
		}
		secret.Data[csr.KeyKubeconfig] = kubeconfig
	}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, names.LabelCredential, names.CredentialAddon)
	metav1.SetMetaDataLabel(&secret.ObjectMeta, names.LabelClusterName, f.cluster)
	metav1.SetMetaDataLabel(&secret.ObjectMeta, names.LabelAddonName, f.name)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, names.AnnotationHub, r.Server.Name())
	return secret, nil
}

// remove deletes the Secrets that are to go. A Secret that only became unneeded goes when all that is needed is there.
func (r *Reconciler) remove(ctx context.Context, f facts, p plan, results []result) error {
	var errs []error
	for _, s := range f.secrets {
		if !goes(s, r.Namespace, p, results) {
			continue
		}
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

// goes tells whether a Secret of ours is to be removed. It is pure.
func goes(s held, namespace string, p plan, results []result) bool {
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
			return s.side == sideAgent && s.key.Namespace == namespace && s.key.Name == csr.PendingName(reg.request)
		}
		return s.side == p.place.side && s.key == reg.secret
	})
}
