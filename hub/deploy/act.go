package deploy

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// results are the errors of the steps of a plan, one for each step.
type results struct {
	bindings []error
	works    []error
}

// occupiedError says that an object has the name that ours is to have.
type occupiedError struct{ message string }

// Error implements error.
func (e *occupiedError) Error() string { return e.message }

// act does what was planned. One failure stops nothing else.
func (r *Reconciler) act(ctx context.Context, p plan) results {
	var done results
	for i := range p.bindings {
		done.bindings = append(done.bindings, run(ctx, writer{r.Bindings, r.Live}, &p.bindings[i], &rbacv1.RoleBinding{}))
	}
	for i := range p.works {
		done.works = append(done.works, run(ctx, writer{r.Client, r.Live}, &p.works[i], &workv1.ManifestWork{}))
	}
	return done
}

// writer writes with one identity, and looks at what is in its way.
type writer struct {
	client client.Client
	live   client.Reader
}

// run does one step. empty is an object to read into.
func run[T client.Object](ctx context.Context, w writer, s *step[T], empty T) error {
	switch s.verb {
	case create:
		return w.create(ctx, s.after, empty)
	case patch:
		_, err := reconcile.PatchMain(ctx, w.client, s.before, s.after)
		if err == nil {
			log.FromContext(ctx).Info("changed", "object", describe(s.after))
		}
		return err
	case remove:
		return w.remove(ctx, s.before)
	case replace:
		if err := w.remove(ctx, s.before); err != nil {
			return err
		}
		return w.create(ctx, s.after, empty)
	}
	return fmt.Errorf("unknown step %d", s.verb)
}

// create creates an object. When its name is taken, the object that has it reports whether the cache was behind, which
// is a lost race, or whether it belongs to somebody else.
func (w writer) create(ctx context.Context, object, empty client.Object) error {
	err := w.client.Create(ctx, object)
	if err == nil {
		log.FromContext(ctx).Info("created", "object", describe(object))
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s: %w", describe(object), err)
	}
	if readErr := w.live.Get(ctx, client.ObjectKeyFromObject(object), empty); readErr != nil {
		return fmt.Errorf("creating %s: %w", describe(object), readErr)
	}
	if sameOwner(object, empty) {
		return err
	}
	return &occupiedError{fmt.Sprintf("%s exists and does not belong to the add-on: rename or delete it",
		describe(object))}
}

// sameOwner reports whether an object carries the labels and the owners that ours is to have.
func sameOwner(want, have client.Object) bool {
	for key, value := range want.GetLabels() {
		if got, found := have.GetLabels()[key]; !found || got != value {
			return false
		}
	}
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

// remove deletes the very object that was observed.
func (w writer) remove(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	err := w.client.Delete(ctx, object, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting %s: %w", describe(object), err)
	}
	log.FromContext(ctx).Info("deleted", "object", describe(object))
	return nil
}

// describe names an object in messages.
func describe(object client.Object) string {
	kind := "object"
	switch object.(type) {
	case *rbacv1.RoleBinding:
		kind = "RoleBinding"
	case *workv1.ManifestWork:
		kind = "ManifestWork"
	}
	return kind + " " + client.ObjectKeyFromObject(object).String()
}
