package deploy

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// isDefinition reports whether an object is a CustomResourceDefinition.
func isDefinition(id works.Identity) bool {
	return id.Group == "apiextensions.k8s.io" && id.Kind == "CustomResourceDefinition"
}

// keepDefinitions adds to what is rendered for an add-on that returned from a content that was undone the
// CustomResourceDefinitions that only its works have: deleting one deletes all objects of its kind, which an undo must
// not. They are read from the API server, because the cache has no contents of works.
func (r *Reconciler) keepDefinitions(ctx context.Context, f *facts) error {
	isRendered := f.current == nil && f.renderErr == nil && f.configuration.Err == nil
	if !isRendered || !keepsDefinitions(*f) {
		return nil
	}
	known := map[works.Identity]bool{}
	for _, object := range f.rendering.Objects {
		known[works.IdentityOf(object)] = true
	}
	lacking := func(s works.Stored) bool { return isDefinition(s.Identity) && !known[s.Identity] }
	for _, work := range ownWorks(*f) {
		if !slices.ContainsFunc(works.ReadAll(work), lacking) {
			continue
		}
		live, err := reconcile.Get(ctx, r.Live, client.ObjectKeyFromObject(work), &workv1.ManifestWork{})
		if err != nil {
			return fmt.Errorf("finding the CustomResourceDefinitions that an undo keeps: %w", err)
		}
		if live == nil {
			continue
		}
		for i := range live.Spec.Workload.Manifests {
			object := &unstructured.Unstructured{}
			if object.UnmarshalJSON(live.Spec.Workload.Manifests[i].Raw) != nil {
				continue // It defines nothing.
			}
			if id := works.IdentityOf(object); isDefinition(id) && !known[id] {
				known[id] = true
				f.rendering.Objects = append(slices.Clip(f.rendering.Objects), object)
			}
		}
	}
	return nil
}
