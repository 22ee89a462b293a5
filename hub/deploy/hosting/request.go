package hosting

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

// ForHost returns the request with which the objects for the hosting cluster are rendered, and whether it differs: the
// image mirrors are those of the hosting cluster, and annotations that were copied from the managed cluster are left
// out. The agent of the managed cluster may write both there.
func (r Rules) ForHost(request addon.Request) (addon.Request, bool) {
	if r.TrustAsOCM || request.Hosting == nil || request.Hosting.Name == request.Cluster.Name {
		return request, false
	}
	const mirrors = names.AnnotationImageRegistries
	differs := false
	if want, has := request.Hosting.Annotations[mirrors], request.Cluster.Annotations[mirrors]; want != has {
		cluster := *request.Cluster
		cluster.Annotations = maps.Clone(cluster.Annotations)
		delete(cluster.Annotations, mirrors)
		if want != "" {
			if cluster.Annotations == nil {
				cluster.Annotations = map[string]string{}
			}
			cluster.Annotations[mirrors] = want
		}
		request.Cluster, differs = &cluster, true
	}
	for _, key := range copied(request.AddOn) {
		if _, found := request.AddOn.Annotations[key]; !found || key == names.AnnotationHostingCluster {
			continue
		}
		addOn := *request.AddOn
		addOn.Annotations = maps.Clone(addOn.Annotations)
		delete(addOn.Annotations, key)
		request.AddOn, differs = &addOn, true
	}
	return request, differs
}

// Merge returns the objects for the managed cluster of one rendering and those for the hosting cluster of another.
// isHosted reports whether an object is for the hosting cluster.
func Merge(
	managed, hosting []*unstructured.Unstructured, isHosted func(*unstructured.Unstructured) bool,
) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, object := range managed {
		if !isHosted(object) {
			all = append(all, object)
		}
	}
	for _, object := range hosting {
		if isHosted(object) {
			all = append(all, object)
		}
	}
	return all
}
