package reconcile

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/message"
)

// Verb is the kind of write that a Step stands for.
type Verb string

const (
	// Keep writes nothing: the object is in sync.
	Keep Verb = "keep"
	// Create creates After.
	Create Verb = "create"
	// Patch writes the difference between Before and After, the status aside.
	Patch Verb = "patch"
	// Delete deletes Before, and no later object of the same name.
	Delete Verb = "delete"
	// Replace deletes Before and creates After, because the API server refuses to change what differs.
	Replace Verb = "replace"
)

// Step is one planned write.
type Step[T client.Object] struct {
	// Verb says what is done.
	Verb Verb
	// Before is the object as it was observed; unset for Create.
	Before T
	// After is the desired object; unset for Delete. A write fills in the answer of the API server.
	After T
}

// Object returns the object that the step is about: the desired one, or the one to be deleted.
func (s Step[T]) Object() T {
	if s.Verb == Delete {
		return s.Before
	}
	return s.After
}

// Writer runs steps and logs each change.
type Writer[T client.Object] struct {
	// Client writes.
	Client client.Client
	// Live reads from the API server, without a cache. It is used only when the name of a new object is taken.
	Live client.Reader
	// Adopt returns the steps that turn an object that has the name of a new one into the desired one, or an error where
	// the object must not be touched. No steps mean that the cache is behind, which is a lost race. A nil Adopt always
	// means that.
	Adopt func(want, found T) ([]Step[T], error)
	// Remove deletes an object in place of Client; nil means Client.
	Remove func(ctx context.Context, object T) error
}

// Run runs one step. It returns the object as it is afterwards, nil after Delete. Deleting an object that is gone
// already succeeds.
func (w Writer[T]) Run(ctx context.Context, s Step[T]) (T, error) {
	var none T
	switch s.Verb {
	case Keep:
		return s.After, nil
	case Create:
		return w.create(ctx, s.After)
	case Patch:
		return s.After, w.patch(ctx, s)
	case Delete:
		return none, w.delete(ctx, s.Before)
	case Replace:
		if err := w.delete(ctx, s.Before); err != nil {
			return none, err
		}
		return w.create(ctx, s.After)
	}
	return none, fmt.Errorf("writing %s: unknown verb %q", Describe(s.After), s.Verb)
}

func (w Writer[T]) create(ctx context.Context, want T) (T, error) {
	err := w.Client.Create(ctx, want)
	if err == nil {
		log.FromContext(ctx).Info("created", "object", Describe(want))
		return want, nil
	}
	taken := fmt.Errorf("creating %s: %w", Describe(want), err)
	if !apierrors.IsAlreadyExists(err) || w.Adopt == nil {
		return want, taken
	}
	found, err := w.read(ctx, want)
	if err != nil {
		return want, err
	}
	steps, err := w.Adopt(want, found)
	if err != nil {
		return want, err
	}
	if len(steps) == 0 {
		return want, taken
	}
	w.Adopt = nil // Another client that takes the name now is faster.
	for _, s := range steps {
		if found, err = w.Run(ctx, s); err != nil {
			return found, err
		}
	}
	return found, nil
}

// read reads the object that has the name of a new one.
func (w Writer[T]) read(ctx context.Context, want T) (T, error) {
	found, isObject := reflect.New(reflect.TypeOf(want).Elem()).Interface().(T)
	if !isObject {
		return want, fmt.Errorf("reading %s: %T is no object", Describe(want), want)
	}
	found.GetObjectKind().SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(want), found); err != nil {
		return want, fmt.Errorf("reading %s, whose name is taken: %w", Describe(want), err)
	}
	return found, nil
}

func (w Writer[T]) patch(ctx context.Context, s Step[T]) error {
	changed, err := PatchMain(ctx, w.Client, s.Before, s.After)
	if apierrors.IsNotFound(err) && !s.Before.GetDeletionTimestamp().IsZero() {
		return nil // It was being deleted, and is gone.
	}
	if changed {
		log.FromContext(ctx).Info("changed", "object", Describe(s.After))
	}
	return err
}

func (w Writer[T]) delete(ctx context.Context, object T) error {
	uid := object.GetUID()
	var err error
	if w.Remove != nil {
		err = w.Remove(ctx, object)
	} else {
		err = w.Client.Delete(ctx, object, client.Preconditions{UID: &uid},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting %s: %w", Describe(object), err)
	}
	if err == nil {
		log.FromContext(ctx).Info("deleted", "object", Describe(object))
	}
	return nil
}

// Describe names an object in messages: its kind, its namespace if it has one, and its name.
func Describe(object client.Object) string {
	return message.Object(kindOf(object), object.GetNamespace(), object.GetName())
}
