package hosting

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// Counts reports whether a work on another cluster than that of an add-on may be one of the add-on: others may create a
// work with its labels in any namespace where they may create works.
//
// Works count on the hosting cluster that the add-on names, and, with its UID, on those that the hub recorded. An
// earlier version wrote no record and no UID. What it deployed counts wherever it is as long as there is no record,
// which the first pass writes, and only for an add-on with a finalizer of hosted mode: one that was never hosted has no
// works elsewhere. Hooks of that version count on the present hosting cluster only.
func Counts(addOn *addonv1beta1.ManagedClusterAddOn, work *workv1.ManifestWork) bool {
	if work.Namespace == addOn.Namespace || work.Namespace == addOn.Annotations[names.AnnotationHostingCluster] {
		return true
	}
	uid, written := work.Annotations[names.AnnotationAddonUID]
	recorded, known := addOn.Annotations[names.AnnotationHostedOn]
	if written || isHook(addOn, work) {
		return uid == string(addOn.UID) && slices.Contains(split(recorded), work.Namespace)
	}
	if known {
		return slices.Contains(split(recorded), work.Namespace)
	}
	return slices.ContainsFunc(addOn.Finalizers, IsFinalizer)
}

// isHook reports whether a work runs pre-delete hooks.
func isHook(addOn *addonv1beta1.ManagedClusterAddOn, work *workv1.ManifestWork) bool {
	return strings.HasPrefix(work.Name, "addon-"+addOn.Name+"-pre-delete")
}

// Places returns the clusters on which works of an add-on may be besides its own: the hosting cluster that it names and
// those that the hub recorded. What cannot be the name of a cluster has no works.
func Places(addOn *addonv1beta1.ManagedClusterAddOn) []string {
	hosts := split(addOn.Annotations[names.AnnotationHostedOn])
	named := addOn.Annotations[names.AnnotationHostingCluster]
	if named != "" && named != addOn.Namespace && !slices.Contains(hosts, named) {
		hosts = append(hosts, named)
	}
	return slices.DeleteFunc(hosts, func(host string) bool { return len(validation.IsDNS1123Label(host)) > 0 })
}

// IsFinalizer reports whether an add-on has a finalizer because something of it is on a hosting cluster.
func IsFinalizer(finalizer string) bool {
	return slices.Contains([]string{
		addonv1beta1.AddonHostingManifestFinalizer, addonv1alpha1.AddonDeprecatedHostingManifestFinalizer,
		addonv1beta1.AddonHostingPreDeleteHookFinalizer, addonv1alpha1.AddonDeprecatedHostingPreDeleteHookFinalizer,
	}, finalizer)
}

// Record returns the value of names.AnnotationHostedOn with the clusters on which works of an add-on are, which count,
// and the one on which works are about to be written, empty for none. A cluster is never taken off: a work there may be
// written and not seen yet. False means that nothing changes.
func Record(addOn *addonv1beta1.ManagedClusterAddOn, all []*workv1.ManifestWork, next string) (string, bool) {
	before := addOn.Annotations[names.AnnotationHostedOn]
	hosts := split(before)
	add := func(host string) {
		if host != "" && host != addOn.Namespace && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	for _, work := range all {
		add(work.Namespace)
	}
	add(next)
	slices.Sort(hosts)
	after := strings.Join(hosts, ",")
	return after, after != before
}
