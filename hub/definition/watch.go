package definition

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kit "github.com/spokelet/spokelet/internal/watch"
)

// watched is the watch of one definition.
type watched struct {
	store cache.Store
	// synced reports whether the definition was listed.
	synced func() bool
}

// follow watches one definition by name, which needs no right to others, and calls wake when it changes.
func follow(ctx context.Context, c client.WithWatch, name string, wake func()) (watched, error) {
	only := &client.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &apiextensionsv1.CustomResourceDefinitionList{}
			return list, c.List(ctx, list, &client.ListOptions{Raw: &options}, only)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, &apiextensionsv1.CustomResourceDefinitionList{}, &client.ListOptions{Raw: &options}, only)
		},
	}
	informer := kit.NewInformer(cache.ToListWatcherWithWatchListSemantics(lists, c),
		&apiextensionsv1.CustomResourceDefinition{}, 0, cache.Indexers{})
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { wake() }, UpdateFunc: func(any, any) { wake() }, DeleteFunc: func(any) { wake() },
	})
	if err := errors.Join(err, informer.SetTransform(trim)); err != nil {
		return watched{}, fmt.Errorf("watching the definition %s: %w", name, err)
	}
	go informer.RunWithContext(ctx)
	return watched{store: informer.GetStore(), synced: informer.HasSynced}, nil
}

// trim drops the schemas of a definition, which are most of its size.
func trim(obj any) (any, error) {
	if crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		for i := range crd.Spec.Versions {
			version := &crd.Spec.Versions[i]
			crd.Spec.Versions[i] = apiextensionsv1.CustomResourceDefinitionVersion{
				Name: version.Name, Served: version.Served, Storage: version.Storage,
			}
		}
		crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	}
	return obj, nil
}

// get returns the last observed definition; nil when it does not exist.
func (w watched) get(name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	obj, found, err := w.store.GetByKey(name)
	if err != nil {
		return nil, fmt.Errorf("looking up definition %s: %w", name, err)
	}
	crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !found || !ok {
		return nil, nil // no definition is not an error
	}
	return crd, nil
}
