package addonapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// AutoDiscovery reads spec.hostedModeAutoDiscovery.mode of a ClusterManagementAddOn with a reader without a cache, and
// the version of the object that has it. It is empty where it is not set, or where the definition of the hub lacks the
// field or v1beta1: the API module has no type for it, and v1alpha1 has it in an annotation only, whose name is that of
// whoever converts. A list needs no more rights than the cache has.
func AutoDiscovery(ctx context.Context, live client.Reader, name string) (mode, version string, err error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(addonv1beta1.GroupVersion.String())
	list.SetKind("ClusterManagementAddOnList")
	err = live.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: name})
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return "", "", nil
	case err != nil:
		return "", "", fmt.Errorf("reading spec.hostedModeAutoDiscovery of ClusterManagementAddOn %s: %w", name, err)
	}
	for i := range list.Items {
		if list.Items[i].GetName() != name {
			continue
		}
		version = list.Items[i].GetResourceVersion()
		// A value of another type is none that anybody knows.
		mode, _, _ = unstructured.NestedString(list.Items[i].Object, "spec", "hostedModeAutoDiscovery", "mode")
		mode = cmp.Or(mode, carriedMode(list.Items[i].GetAnnotations()[names.AnnotationCarried]))
	}
	return mode, version, nil
}

// carriedMode returns the mode from the annotation that carries fields of v1beta1 through v1alpha1; empty for none. It
// is there until the webhook converts: before that, the API server renames the version of what is stored.
func carriedMode(annotation string) string {
	var carried map[string][]struct {
		Path  []string `json:"path"`
		Value any      `json:"value"`
	}
	if json.Unmarshal([]byte(annotation), &carried) != nil {
		return "" // The webhook leaves such an annotation alone.
	}
	for _, field := range carried[string(WireBeta)] {
		value, is := field.Value.(map[string]any)
		if is && slices.Equal(field.Path, []string{"spec", "hostedModeAutoDiscovery"}) {
			mode, _ := value["mode"].(string)
			return mode
		}
	}
	return ""
}
