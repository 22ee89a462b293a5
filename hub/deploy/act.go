package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/hub/deploy/hosting"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// guarded returns an add-on with the finalizers and the record of hosting clusters that its works need. It may be a
// newer one than that of the plan, with finalizers of others.
func (p plan) guarded(addOn *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
	after := addOn.DeepCopy()
	if p.finalizers != nil {
		guards := slices.DeleteFunc(slices.Clone(*p.finalizers), func(f string) bool { return !isOCMFinalizer(f) })
		after.Finalizers, _ = withGuards(addOn.Finalizers, guards)
	}
	if p.hosts != nil {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, names.AnnotationHostedOn, *p.hosts)
	}
	if p.renames {
		hosting.Rename(after, p.foundHost)
	}
	return after
}

// act runs the steps of a plan. One failure stops nothing else, but no work is written before the add-on has the
// finalizers that guard it, and the record by which it is found again.
func (r *Reconciler) act(ctx context.Context, f facts, p plan) results {
	done := results{bindings: r.runBindings(ctx, p.bindings)}
	if p.finalizers != nil || p.hosts != nil || p.renames {
		after := p.guarded(f.addOn)
		if _, err := r.AddOns.PatchAddOn(ctx, f.addOn, after); err != nil {
			for range p.works {
				done.works = append(done.works, err)
			}
			return done
		}
		done.addOn = after
		r.recordUnneeded(ctx, f, after.Finalizers)
	}
	done.works = r.runWorks(ctx, p.works)
	return done
}

// runWorks runs steps and returns the error of each.
func (r *Reconciler) runWorks(ctx context.Context, steps []workStep) []error {
	var failed []error
	for _, s := range steps {
		err := r.complete(ctx, s)
		if err == nil {
			_, err = r.workWriter().Run(ctx, s)
		}
		failed = append(failed, err)
	}
	return failed
}

// complete reads the manifests of a work that keeps some of them: the cache has only their digests.
func (r *Reconciler) complete(ctx context.Context, s workStep) error {
	if !works.NeedsWhole(s) {
		return nil
	}
	live, key := &workv1.ManifestWork{}, client.ObjectKeyFromObject(s.Before)
	if err := client.IgnoreNotFound(r.Live.Get(ctx, key, live)); err != nil {
		return fmt.Errorf("reading %s: %w", reconcile.Describe(s.Before), err)
	}
	if !works.Whole(s, live) {
		return reconcile.Behind(workv1.GroupName, "manifestworks", key.String())
	}
	return nil
}

// takesRoles reports whether a plan deletes a RoleBinding, has it bind another role, or takes a subject from it.
func takesRoles(p plan) bool {
	return slices.ContainsFunc(p.bindings, func(s bindingStep) bool {
		switch s.Verb {
		case reconcile.Delete, reconcile.Replace:
			return true
		case reconcile.Patch:
			return slices.ContainsFunc(s.Before.Subjects, func(had rbacv1.Subject) bool {
				return !slices.Contains(s.After.Subjects, had)
			})
		default:
			return false
		}
	})
}

// dropsGuards reports whether a plan takes a finalizer off an add-on, which keeps it until its hook has run.
func dropsGuards(f facts, p plan) bool {
	return p.finalizers != nil && slices.ContainsFunc(f.addOn.Finalizers, func(had string) bool {
		return !slices.Contains(*p.finalizers, had)
	})
}

// moves are what steps do to the objects that works bring to clusters.
type moves struct {
	// deletes reports whether a work is deleted.
	deletes bool
	// givers are the works from which each object is taken, and stays are the objects that works keep or get.
	givers map[placed][]*workv1.ManifestWork
	stays  map[placed]bool
}

// movesOf returns what steps do.
func movesOf(steps []workStep) moves {
	m := moves{givers: map[placed][]*workv1.ManifestWork{}, stays: map[placed]bool{}}
	for _, s := range steps {
		if s.Verb == reconcile.Keep {
			continue
		}
		m.deletes = m.deletes || s.Verb == reconcile.Delete
		had, has := map[placed]bool{}, map[placed]bool{}
		placedIn(s.Before, had)
		placedIn(s.After, has)
		for o := range had {
			if !has[o] {
				m.givers[o] = append(m.givers[o], s.Before)
			}
		}
		maps.Copy(m.stays, has)
	}
	return m
}

// takesObjects reports whether a work is deleted, or the works of a cluster lose an object. One that goes from one work
// of a cluster to another stays there.
func (m moves) takesObjects() bool {
	for o := range m.givers {
		if !m.stays[o] {
			return true
		}
	}
	return m.deletes
}

// placed is an object on the cluster to which a work brings it.
type placed struct {
	namespace string
	works.Identity
}

// placedIn adds the objects of a work; nil has none.
func placedIn(work *workv1.ManifestWork, to map[placed]bool) {
	if work == nil {
		return
	}
	for i := range work.Spec.Workload.Manifests {
		if o, err := works.Glance(&work.Spec.Workload.Manifests[i]); err == nil {
			to[placed{work.Namespace, o.Identity}] = true
		}
	}
}

// changesConfigs reports whether a plan writes, or may write, other configurations into works that are there. Where the
// same ones have another order, only the content shows it.
func changesConfigs(p plan) bool {
	of := func(w *workv1.ManifestWork) string { return w.Annotations[names.AnnotationConfigSpecHash] }
	return slices.ContainsFunc(p.works, func(s workStep) bool {
		return s.Verb == reconcile.Patch && (of(s.Before) != of(s.After) ||
			!equality.Semantic.DeepEqual(s.Before.Spec.Workload, s.After.Spec.Workload))
	})
}

// makesAgain reports whether a plan makes bindings or works for an add-on that had them.
func makesAgain(had making, p plan) bool {
	return had.bindings && creates(p.bindings) || had.works && creates(p.works)
}

// recordAdmission writes the configuration to which a rollout admitted the add-on into its status before any work of it
// is written, and returns the add-on as it is then. Otherwise a hub manager that ends in between would forget the
// admission: the next one would put the former content back, and admit another cluster meanwhile.
func (r *Reconciler) recordAdmission(
	ctx context.Context, f facts, p plan,
) (*addonv1beta1.ManagedClusterAddOn, error) {
	writes := func(s workStep) bool { return s.Verb != reconcile.Keep }
	if !f.configuration.Admitted || !slices.ContainsFunc(p.works, writes) {
		return f.addOn, nil
	}
	before := f.addOn
	for tries := 1; ; tries++ {
		after := before.DeepCopy()
		f.record(after, ownWorks(f), false)
		_, err := r.AddOns.PatchAddOnStatus(ctx, before, after)
		if !apierrors.IsConflict(err) || tries == maxTries {
			return after, err
		}
		// Its agent may write the status all the time, which must not keep what the new configuration takes.
		live, liveErr := r.AddOns.SameAddOn(ctx, r.Live, f.addOn)
		if liveErr != nil || live == nil || !hubprocess.SameWishes(live, f.addOn) ||
			!equality.Semantic.DeepEqual(live.Status.ConfigReferences, f.addOn.Status.ConfigReferences) {
			return f.addOn, errors.Join(err, liveErr)
		}
		before = live
	}
}

// maxTries is how often an admission is written at most in a pass.
const maxTries = 10

// recordUnneeded records an Event on an add-on that lives about finalizers that it does not need any more. One that got
// its present spelling is none of them.
func (r *Reconciler) recordUnneeded(ctx context.Context, f facts, after []string) {
	removed, because := unneeded(f.addOn.Finalizers, after)
	if len(removed) == 0 {
		return
	}
	log.FromContext(ctx).Info("removed finalizers", "finalizers", removed, "because", because)
	if r.Recorder != nil {
		r.Recorder.Eventf(f.addOn, nil, corev1.EventTypeNormal, eventFinalizersRemoved, "Deploy", "Removed %s. %s",
			strings.Join(removed, ", "), because)
	}
}

// bindingWriter writes RoleBindings.
func (r *Reconciler) bindingWriter() reconcile.Writer[*rbacv1.RoleBinding] {
	return reconcile.Writer[*rbacv1.RoleBinding]{
		Client: r.Bindings, Live: r.Live,
		Adopt: func(want, found *rbacv1.RoleBinding) ([]bindingStep, error) { return nil, checkOwner(want, found) },
	}
}

// workWriter writes ManifestWorks. A work of ours that lost its labels is not in the cache: it is made again in place.
func (r *Reconciler) workWriter() reconcile.Writer[*workv1.ManifestWork] {
	return reconcile.Writer[*workv1.ManifestWork]{
		Client: r.Client, Live: r.Live,
		Adopt: func(want, found *workv1.ManifestWork) ([]workStep, error) {
			if len(want.OwnerReferences) == 0 || sameOwner(want, found) || !hasOwners(want, found) ||
				found.DeletionTimestamp != nil {
				return nil, checkOwner(want, found)
			}
			return []workStep{{Verb: reconcile.Patch, Before: found, After: works.Adopted(want, found)}}, nil
		},
	}
}

// runAll runs steps and returns the error of each.
func runAll[T client.Object](ctx context.Context, w reconcile.Writer[T], steps []reconcile.Step[T]) []error {
	var failed []error
	for _, s := range steps {
		_, err := w.Run(ctx, s)
		failed = append(failed, err)
	}
	return failed
}

// checkOwner refuses to touch an object of another client that has the name of one of ours. If it is ours, the cache is
// behind.
func checkOwner(want, found client.Object) error {
	if sameOwner(want, found) {
		return nil
	}
	return &nameTakenError{fmt.Sprintf("%s exists and does not belong to the add-on: rename or delete it",
		reconcile.Describe(want))}
}

// sameOwner reports whether an object has the labels and the owners of the desired one.
func sameOwner(want, have client.Object) bool {
	for key, value := range want.GetLabels() {
		if got, found := have.GetLabels()[key]; !found || got != value {
			return false
		}
	}
	return hasOwners(want, have)
}

// hasOwners reports whether an object has the owners of the desired one.
func hasOwners(want, have client.Object) bool {
	owners := map[string]bool{}
	for _, owner := range have.GetOwnerReferences() {
		owners[string(owner.UID)] = true
	}
	for _, owner := range want.GetOwnerReferences() {
		if !owners[string(owner.UID)] {
			return false
		}
	}
	return true
}

// actOnDeletion records failed and completed hooks first, then writes the works. Then it removes finalizers, or sets
// the conditions that explain what the add-on waits for.
func (r *Reconciler) actOnDeletion(
	ctx context.Context, f deletionFacts, p deletionPlan, err error,
) reconcile.Outcome {
	outcome := reconcile.Done()
	if p.waits {
		outcome = f.repeated().And(answered(f.registrationsErr, f.setupErr, f.renderErr))
	}
	if !p.wake.IsZero() {
		outcome = outcome.And(reconcile.Waiting(p.wake))
	}
	if err != nil {
		return outcome.And(reconcile.FromError(err))
	}
	before, err := r.recordAttempts(ctx, f, p)
	if err != nil {
		return outcome.And(reconcile.FromError(client.IgnoreNotFound(err)))
	}
	if err := errors.Join(r.runWorks(ctx, p.works)...); err != nil {
		outcome = outcome.And(reconcile.FromError(err))
		if len(p.drop) > 0 {
			return outcome
		}
	}
	if len(p.drop) > 0 {
		_, err := r.AddOns.PatchAddOn(ctx, before, p.withoutFinalizers(before))
		if err == nil {
			r.recordFinalizersRemoved(ctx, f, p)
		}
		return outcome.And(reconcile.FromError(client.IgnoreNotFound(err)))
	}
	after := before.DeepCopy()
	for _, condition := range p.conditions {
		condition.Message = message.Cut(condition.Message, maxMessage)
		reconcile.SetCondition(&after.Status.Conditions, condition, f.now)
	}
	_, err = r.AddOns.PatchAddOnStatus(ctx, before, after)
	if err == nil {
		r.tellDependents(f, after.Status.Conditions)
	}
	return outcome.And(reconcile.FromError(client.IgnoreNotFound(err)))
}

// recordAttempts records on the add-on which attempts of hooks failed, so that a restart counts none twice, or that
// they are done, so that none runs twice. It returns the add-on as it is then.
func (r *Reconciler) recordAttempts(
	ctx context.Context, f deletionFacts, p deletionPlan,
) (*addonv1beta1.ManagedClusterAddOn, error) {
	if p.attempts == "" {
		return f.addOn, nil
	}
	after := f.addOn.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, names.AnnotationHookAttempts, p.attempts)
	if _, err := r.AddOns.PatchAddOn(ctx, f.addOn, after); err != nil {
		return nil, err
	}
	for _, failure := range p.failures {
		log.FromContext(ctx).Info("a pre-delete hook failed", "failure", failure)
		if r.Recorder != nil {
			r.Recorder.Eventf(f.addOn, nil, corev1.EventTypeWarning, eventHookFailed, "Delete", "%s", failure)
		}
	}
	return after, nil
}

// recordFinalizersRemoved records an Event on the add-on about the removed finalizers and the reason.
func (r *Reconciler) recordFinalizersRemoved(ctx context.Context, f deletionFacts, p deletionPlan) {
	because := strings.Join(p.because, " ")
	log.FromContext(ctx).Info("removed finalizers", "finalizers", p.drop, "because", because)
	if r.Recorder == nil {
		return
	}
	kind, reason := corev1.EventTypeNormal, eventFinalizersRemoved
	if p.skipped {
		kind, reason = corev1.EventTypeWarning, eventHookSkipped
	}
	r.Recorder.Eventf(f.addOn, nil, kind, reason, "Delete", "Removed %s. %s", strings.Join(p.drop, ", "), because)
}
