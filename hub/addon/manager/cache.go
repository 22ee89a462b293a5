package manager

import (
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/hub/approval"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
)

// cacheOptions configures the cache: what belongs to the add-ons with these names, clusters, and configurations. home
// is the namespace of the hub manager.
func cacheOptions(home string, addOns []string) (cache.Options, error) {
	mine, err := hubprocess.Requires(names.LabelAddonName, selection.In, addOns...)
	if err != nil {
		return cache.Options{}, err
	}
	stored, err := hubprocess.Requires(names.LabelConfigRevision, selection.Exists)
	if err != nil {
		return cache.Options{}, err
	}
	kept, _ := stored.Requirements()
	// The API server selects by one name only. With several add-ons, those of others are received, too.
	var named fields.Selector
	if len(addOns) == 1 {
		named = fields.OneTermEqualSelector(metav1.ObjectNameField, addOns[0])
	}
	t := &hubprocess.Trims{}
	return cache.Options{
		DefaultTransform: hubprocess.Bounded(t.Other),
		ByObject: map[client.Object]cache.ByObject{
			&workv1.ManifestWork{}: {Label: mine, Transform: hubprocess.Annotated(works.Trim(&t.Shared))},
			&certificatesv1.CertificateSigningRequest{}: {
				Label: approval.Selector(addOns...), Transform: approve.Trim,
			},
			&rbacv1.RoleBinding{}: {Label: mine, Transform: hubprocess.Annotated(t.Binding)},
			&appsv1.ControllerRevision{}: {
				Label: mine.Add(kept...), Namespaces: map[string]cache.Config{home: {}},
			},
			&clusterv1.ManagedCluster{}: {Transform: t.Cluster},
			// Only one of two versions is watched: the stored one.
			&addonv1alpha1.ManagedClusterAddOn{}:    {Field: named, Transform: hubprocess.Bounded(addOn(t))},
			&addonv1beta1.ManagedClusterAddOn{}:     {Field: named, Transform: hubprocess.Bounded(addOn(t))},
			&addonv1alpha1.ClusterManagementAddOn{}: {Field: named, Transform: hubprocess.Bounded(t.Other)},
			&addonv1beta1.ClusterManagementAddOn{}:  {Field: named, Transform: hubprocess.Bounded(t.Other)},
		},
	}, nil
}

// addOn returns the transformation of ManagedClusterAddOns.
func addOn(t *hubprocess.Trims) func(any) (any, error) {
	return func(in any) (any, error) {
		out, err := t.Other(in)
		if err != nil {
			return out, err
		}
		return t.AddOn(out)
	}
}
