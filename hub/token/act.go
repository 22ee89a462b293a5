package token

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
	tokens "github.com/spokelet/spokelet/internal/token"
)

// verb is what a step does.
type verb string

const (
	keep    verb = "keep"
	create  verb = "create"
	patch   verb = "patch"
	replace verb = "replace"
	remove  verb = "remove"
	// foreign and leaving cannot be done: the name is taken by somebody else, or by an object that is being deleted.
	foreign verb = "foreign"
	leaving verb = "leaving"
)

// step is what becomes of one object.
type step struct {
	verb verb
	// before is what is there, after is what shall be.
	before, after client.Object
}

// result is what became of a plan.
type result struct {
	// uid is that of the ServiceAccount, empty when there is none.
	uid types.UID
	// err joins what went wrong.
	err error
}

// takenError says that a name is taken by an object of somebody else.
type takenError struct{ object client.Object }

// Error says which object it is and what to do.
func (e *takenError) Error() string {
	return fmt.Sprintf("%s exists already and is not ours, so it is left alone; delete it, or hand it over by labelling "+
		"it %s=<name of the add-on> and %s=true", nameOf(e.object), tokens.LabelName, tokens.LabelInfrastructure)
}

// act does the steps of a plan; one that fails does not keep the others from being done.
func (r *Reconciler) act(ctx context.Context, f facts, p plan) result {
	var done result
	var failed []error
	for _, s := range p.steps {
		after, err := r.do(ctx, f, s)
		if err != nil {
			failed = append(failed, err)
		}
		if account, isAccount := after.(*corev1.ServiceAccount); isAccount && err == nil {
			done.uid = account.UID
		}
	}
	done.err = errors.Join(failed...)
	return done
}

// do does one step and returns the object as it is then; nil when it is gone.
func (r *Reconciler) do(ctx context.Context, f facts, s step) (client.Object, error) {
	switch s.verb {
	case create:
		return r.create(ctx, f, s.after)
	case patch:
		if _, err := reconcile.PatchMain(ctx, r.Client, s.before, s.after); err != nil {
			return nil, err
		}
		log.FromContext(ctx).Info("repaired token infrastructure", "object", nameOf(s.after))
		return s.after, nil
	case replace:
		if err := r.remove(ctx, s.before); err != nil {
			return nil, err
		}
		return r.create(ctx, f, s.after)
	case remove:
		return nil, r.remove(ctx, s.before)
	case foreign:
		return nil, &takenError{s.before}
	case leaving:
		return nil, fmt.Errorf("waiting until %s, which is being deleted, is gone", nameOf(s.before))
	case keep:
	}
	return s.after, nil
}

// create creates an object. Where the name is taken by what the cache does not show, that decides how to go on: it may
// be new, it may have lost its labels, or it is somebody else's.
func (r *Reconciler) create(ctx context.Context, f facts, want client.Object) (client.Object, error) {
	err := r.Client.Create(ctx, want)
	switch {
	case err == nil:
		log.FromContext(ctx).Info("created token infrastructure", "object", nameOf(want))
		return want, nil
	case !apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("creating %s: %w", nameOf(want), err)
	}
	there, readErr := read(ctx, r.Live, want)
	if readErr != nil || there == nil {
		return nil, errors.Join(err, readErr)
	}
	want.SetResourceVersion("")
	s := towards(there, want, f.addOn)
	if s.verb == replace {
		// One that is to be replaced shows in the cache soon, and is replaced then.
		return nil, fmt.Errorf("creating %s: %w", nameOf(want), err)
	}
	return r.do(ctx, f, s)
}

// remove deletes the very object that was looked at.
func (r *Reconciler) remove(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", nameOf(object), err)
	}
	if err == nil {
		log.FromContext(ctx).Info("removed token infrastructure", "object", nameOf(object))
	}
	return nil
}
