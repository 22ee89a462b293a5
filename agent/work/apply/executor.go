package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/agent/work/executor"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/apierror"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// impersonate prepares the dry runs of the executor for an object that its API server judges by who writes it. The API
// server compares the object after a request with the permissions of the user who sends it, so no other request can
// stand for that one: not that of the whole manifest where fields are ignored, nor the same one for another state of
// the object.
func (r *run) impersonate() error {
	q := r.step.Question
	if r.Session == nil || q == nil || r.denial != nil || !q.MustTry() {
		return nil
	}
	client, err := r.Session.Impersonate()
	if err != nil {
		return err
	}
	r.trial = &client
	return nil
}

// deny keeps the manifest from being applied for the rest of the step.
func (r *run) deny(d *Denial) { r.denial, r.mode = d, watch.ReadDenied }

// send sends a request that changes the content of the object. With a trial, the executor sends the same request first,
// without effect; unless it is accepted, nothing is sent. Such a request must take effect on no other state of the
// object than the one that it was tried on: it creates the object, replaces all of it, or has its resourceVersion.
// Owner references and managed fields grant nothing and are not sent this way.
func (r *run) send(request func(spoke.Object) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if r.denial != nil && r.denial.Err != nil {
		return nil, r.denial.Err
	}
	if r.trial != nil {
		_, err := request(r.at(*r.trial))
		switch {
		case apierror.CannotImpersonate(err):
			return nil, fmt.Errorf("trying the write as %s: %w", r.Session.User(), err)
		case apierrors.IsForbidden(err):
			refused := r.Session.DenyWrite(*r.step.Question)
			r.deny(DenialOf(refused, r.step.Frozen))
			r.recheck = reconcile.Earliest(r.recheck, refused.Recheck)
			return nil, r.denial.Err
		case err != nil:
			return nil, err
		}
	}
	return request(r.object())
}

// create creates the object.
func (r *run) create(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return r.send(func(o spoke.Object) (*unstructured.Unstructured, error) {
		return o.Create(ctx, object)
	})
}

// replace writes the object as a whole, at its resourceVersion.
func (r *run) replace(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return r.send(func(o spoke.Object) (*unstructured.Unstructured, error) {
		return o.Update(ctx, object)
	})
}

// remove deletes the object, to create it again, if it still has the UID.
func (r *run) remove(ctx context.Context, uid types.UID) error {
	_, err := r.send(func(o spoke.Object) (*unstructured.Unstructured, error) {
		_, err := o.Delete(ctx, uid, "")
		return nil, err
	})
	return err
}

// mayDelete returns why the executor may not delete an object that is recreated; nil when it may. An object that is
// deleted with its work was asked about before.
func (r *run) mayDelete(ctx context.Context) error {
	q := r.step.Question
	if r.Session == nil || q == nil || q.Verbs.Has("delete") {
		return nil
	}
	d := r.Session.MayDelete(ctx, *q)
	if d.Verdict == executor.Denied {
		return permanent(d.Err)
	}
	return d.Err
}

// applyOrCreate applies a configuration to the live object. With a trial, an object that does not exist is created
// instead: an applied configuration would take effect on whatever came to exist since the trial.
func (r *run) applyOrCreate(ctx context.Context, live, next *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	if live == nil && r.trial != nil {
		return r.create(ctx, next)
	}
	return r.send(func(o spoke.Object) (*unstructured.Unstructured, error) {
		return o.Apply(ctx, next, r.config.Manager, r.config.Force)
	})
}

// next is what is applied to a live object, nil when it does not exist. With a trial it is for that state of the object
// only.
func (r *run) next(live *unstructured.Unstructured, trusted bool) *unstructured.Unstructured {
	next := r.config.Next(live, trusted)
	if live != nil && r.trial != nil {
		next.SetResourceVersion(live.GetResourceVersion())
	}
	return next
}
