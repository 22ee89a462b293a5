package work

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// trial is how an executor tries a write to an object that hands out rights. The API server compares what the object
// would say after that very request with the rights of whoever sends it, so no other request can stand for it: not that
// of the whole manifest where fields are ignored, nor the same one for another state of the object.
type trial struct {
	// spoke speaks as the executor and without effect.
	spoke spoke
	// refuse denies the task, because the API server refused the executor, and returns why.
	refuse func() error
}

// send sends a request that changes the content of the object of a task. Where the task has a trial, the executor sends
// the same request first and without effect; unless it is accepted, nothing is sent. Such a request must take effect on
// no other state of the object than that which it was tried on: it makes the object, replaces all of it, or has its
// resourceVersion. Owner references and managed fields hand out nothing and are not sent this way.
func (a *applier) send(t *task, request func(spoke) (*unstructured.Unstructured, error),
) (*unstructured.Unstructured, error) {
	if t.denied != nil && t.denied.err != nil {
		return nil, t.denied.err
	}
	if t.trial != nil {
		_, err := request(t.trial.spoke)
		switch {
		case apierrors.IsForbidden(err):
			return nil, t.trial.refuse()
		case err != nil:
			return nil, err
		}
	}
	return request(a.spoke)
}

// create makes the object of a task.
func (a *applier) create(ctx context.Context, t *task, object *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	return a.send(t, func(s spoke) (*unstructured.Unstructured, error) {
		return s.create(ctx, t.resource, t.id(), object)
	})
}

// replace writes the object of a task as a whole, at the resourceVersion that it carries.
func (a *applier) replace(ctx context.Context, t *task, object *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	return a.send(t, func(s spoke) (*unstructured.Unstructured, error) {
		return s.update(ctx, t.resource, t.id(), object)
	})
}

// remove deletes the object of a task, to make it anew, if it still has the UID.
func (a *applier) remove(ctx context.Context, t *task, uid types.UID) error {
	_, err := a.send(t, func(s spoke) (*unstructured.Unstructured, error) {
		return nil, s.remove(ctx, t.resource, t.id(), uid, "")
	})
	return err
}

// applyOrMake applies a configuration to the live object of a task. With a trial, an object that does not exist is
// created instead: an applied configuration would take effect on whatever came to be since the trial.
func (a *applier) applyOrMake(ctx context.Context, t *task, live, next *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	if live == nil && t.trial != nil {
		return a.create(ctx, t, next)
	}
	c := t.configuration
	return a.send(t, func(s spoke) (*unstructured.Unstructured, error) {
		return s.serverSideApply(ctx, t.resource, t.id(), next, c.Manager, c.Force)
	})
}

// plan is what is applied to a live object, nil when it does not exist. With a trial it is for that state of the object
// only.
func (t *task) plan(live *unstructured.Unstructured, trusted bool) *unstructured.Unstructured {
	next := t.configuration.Next(live, trusted)
	if live != nil && t.trial != nil {
		next.SetResourceVersion(live.GetResourceVersion())
	}
	return next
}
