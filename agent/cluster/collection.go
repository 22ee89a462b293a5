package cluster

import (
	"context"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/watch"
)

// collection keeps one value for each object of a resource of the managed cluster. Until the first list, and while the
// API server forbids the watch, the objects are unknown.
type collection[T comparable] struct {
	watch.Store[*unstructured.Unstructured, T]
	// description names the objects in logs.
	description string
	// labelSelector and fieldSelector restrict the objects; empty means all.
	labelSelector, fieldSelector string
	// changed is called after every change of the values, and must not block.
	changed func()
	// forbidden is set while the API server forbids the watch.
	forbidden atomic.Bool
}

// newCollection returns the collection of the values that keep returns. An object for which keep fails is left out, and
// the log has the error.
func newCollection[T comparable](
	description string, keep func(*unstructured.Unstructured) (T, error), changed func(),
) *collection[T] {
	c := &collection[T]{description: description, changed: changed}
	c.Keep = func(ctx context.Context, object *unstructured.Unstructured) (T, bool) {
		value, err := keep(object)
		if err != nil {
			log.FromContext(ctx).Info("left out", "watch", description, "name", object.GetName(), "reason", err.Error())
		}
		return value, err == nil
	}
	c.Changed = func([]types.NamespacedName) { changed() }
	return c
}

// run lists and watches until ctx ends.
func (c *collection[T]) run(ctx context.Context, client dynamic.Interface, resource dynamic.ResourceInterface) {
	source := watch.From(client, resource.List, resource.Watch)
	source.LabelSelector, source.FieldSelector = c.labelSelector, c.fieldSelector
	one := watch.Watch[*unstructured.Unstructured]{
		Name: "agent.cluster", Description: c.description, Source: source, Handler: c,
		Refused: func(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) },
		Ended:   func(err error) { c.ended(ctx, err) },
	}
	one.Run(ctx)
}

// Replace implements watch.Handler.
func (c *collection[T]) Replace(ctx context.Context, objects []*unstructured.Unstructured, version string) {
	c.setForbidden(false)
	c.Store.Replace(ctx, objects, version)
}

// ended records the end of the watch. After most errors the values stay as they were last seen.
func (c *collection[T]) ended(ctx context.Context, err error) {
	switch {
	case apierrors.IsNotFound(err):
		c.setForbidden(false)
		c.Clear(true) // a resource that is not served has no objects
	case apierrors.IsForbidden(err):
		c.Clear(false)
		if c.setForbidden(true) {
			log.FromContext(ctx).Info("the managed cluster does not let the agent watch; grant list and watch",
				"watch", c.description, "error", err.Error())
		}
	}
}

// setForbidden sets forbidden and reports whether it changed.
func (c *collection[T]) setForbidden(forbidden bool) bool {
	if c.forbidden.Swap(forbidden) == forbidden {
		return false
	}
	c.changed()
	return true
}
