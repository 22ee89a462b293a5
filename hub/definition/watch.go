package definition

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/message"
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

// maxNote is how many bytes the note of an Event has at most (API reference, Event v1).
const maxNote = 1024

// recordProblem records an Event when a problem appears, changes or goes away.
func (k *Keeper) recordProblem(crd *apiextensionsv1.CustomResourceDefinition, verdict Verdict) {
	if crd == nil || !k.leads() {
		return
	}
	s := k.states[crd.Name]
	switch {
	case verdict.Problem == s.reported:
		return
	case verdict.Problem != "":
		k.event(Finding{
			Definition: crd, Type: corev1.EventTypeWarning, Reason: "ConversionNotServed", Message: verdict.Problem,
		})
	default:
		k.event(Finding{
			Definition: crd, Type: corev1.EventTypeNormal, Reason: "ConversionServed",
			Message: "requests in every version are answered: " + Describe(crd.Spec.Conversion) + " converts",
		})
	}
	s.reported = verdict.Problem
}

// leads reports whether this process is the leader.
func (k *Keeper) leads() bool {
	select {
	case <-k.Elected:
		return true
	default:
		return false
	}
}

// event records an Event about a definition. Events about cluster-scoped objects are in namespace default.
func (k *Keeper) event(f Finding) {
	if k.leads() {
		about := f.Definition.DeepCopy()
		about.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		k.Recorder.Eventf(about, nil, f.Type, f.Reason, "Convert", "%s", message.Cut(f.Message, maxNote))
	}
}
