package hosting

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

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

// Everyone is the value of names.AnnotationHosts of a cluster that hosts the add-ons of all clusters.
const Everyone = "*"

// Rules are how much a hosting cluster has to say. The zero value believes the annotation of an add-on that names its
// host, as long as the host has no list: an admission policy of the hub lets only those set it who may deploy there.
type Rules struct {
	// RequireConsent makes a cluster host nothing without a list.
	RequireConsent bool
	// TrustAsOCM believes annotations that were copied from a ManagedCluster, which its agent may have written.
	TrustAsOCM bool
}

// Consents reports whether a cluster hosts an add-on. A list of the host counts, whatever it has. Without one, a name
// that was copied from the managed cluster does not, nor one that it claimed, because the agent of that cluster may
// have chosen it. A cluster always hosts its own add-ons.
func (r Rules) Consents(host *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return r.consents(host, addOn.Namespace, slices.Contains(copied(addOn), names.AnnotationHostingCluster) ||
		addOn.Annotations[names.AnnotationHostManagedBy] == discovered)
}

// consents reports whether a cluster hosts the add-ons of another one. chose reports whether the agent of that may have
// chosen the host.
func (r Rules) consents(host *clusterv1.ManagedCluster, cluster string, chose bool) bool {
	if host.Name == cluster {
		return true
	}
	if listed, found := host.Annotations[names.AnnotationHosts]; found {
		return slices.ContainsFunc(split(listed), func(name string) bool { return name == Everyone || name == cluster })
	}
	return r.TrustAsOCM || !r.RequireConsent && !chose
}

// Listing returns the list of a host with one more cluster, for a command that an administrator runs. What cannot be
// the name of a cluster is left out: it consents to nothing, and may mean something to a shell.
func Listing(host *clusterv1.ManagedCluster, cluster string) string {
	all := slices.DeleteFunc(split(host.Annotations[names.AnnotationHosts]), func(name string) bool {
		return len(validation.IsDNS1123Subdomain(name)) > 0
	})
	if !slices.Contains(all, cluster) {
		all = append(all, cluster)
	}
	return strings.Join(all, ",")
}

// copied returns the annotations of an add-on that are copies of those of its cluster.
func copied(addOn *addonv1beta1.ManagedClusterAddOn) []string {
	all := split(addOn.Annotations[names.AnnotationCopied])
	for i, name := range all {
		all[i] = names.AnnotationAddonPrefix + name
	}
	return all
}

// split returns the parts of a list that is separated by commas.
func split(list string) []string {
	var all []string
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}
