package watch

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// adapter hands what a reflector stores to a Handler.
type adapter struct {
	replace        func(objects []any, version string) error
	update, remove func(object any) error
	trim           cache.TransformFunc
	// goesOn reports whether a list only says that the watch goes on at its version.
	goesOn func(version string) bool
	// listed is called after each list that was handed over.
	listed func()
}

var _ cache.TransformingStore = (*adapter)(nil)

// Add implements cache.ReflectorStore.
func (a *adapter) Add(object any) error { return a.update(object) }

// Update implements cache.ReflectorStore.
func (a *adapter) Update(object any) error { return a.update(object) }

// Delete implements cache.ReflectorStore.
func (a *adapter) Delete(object any) error { return a.remove(object) }

// Replace implements cache.ReflectorStore.
func (a *adapter) Replace(objects []any, version string) error {
	var err error
	if !a.goesOn(version) {
		err = a.replace(objects, version)
	}
	if err == nil {
		a.listed()
	}
	return err
}

// Resync implements cache.ReflectorStore; there is nothing to do.
func (a *adapter) Resync() error { return nil }

// Transformer trims objects before the reflector collects a first list.
func (a *adapter) Transformer() cache.TransformFunc { return a.trim }

// store returns the store of the reflector. Every object is trimmed before Handler receives it.
func (w *Watch[T]) store(ctx context.Context) *adapter {
	read := func(object any) (T, error) {
		typed, ok := object.(T)
		if !ok {
			return typed, fmt.Errorf("watching %s: got a %T", w.Description, object)
		}
		if stripped, ok := object.(metav1.Object); ok {
			stripped.SetManagedFields(nil)
		}
		if w.Trim != nil {
			w.Trim(typed)
		}
		return typed, nil
	}
	with := func(handle func(context.Context, T)) func(any) error {
		return func(object any) error {
			typed, err := read(object)
			if err == nil {
				handle(ctx, typed)
			}
			return err
		}
	}
	return &adapter{
		listed: func() {}, goesOn: func(string) bool { return false },
		update: with(w.Handler.Update), remove: with(w.Handler.Delete),
		trim: func(object any) (any, error) { return read(object) },
		replace: func(objects []any, version string) error {
			all := make([]T, 0, len(objects))
			for _, object := range objects {
				typed, err := read(object)
				if err != nil {
					return err
				}
				all = append(all, typed)
			}
			w.Handler.Replace(ctx, all, version)
			return nil
		},
	}
}
