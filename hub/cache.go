package hub

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/hub/approval"
	"github.com/spokelet/spokelet/hub/cluster"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/install"
	"github.com/spokelet/spokelet/hub/placement"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
	tokens "github.com/spokelet/spokelet/internal/token"
	"github.com/spokelet/spokelet/lease"
)

// cacheOptions configures the cache of the manager: which objects of each kind, and which of their fields. home is the
// namespace of the hub manager.
func cacheOptions(home string) (cache.Options, error) {
	ofCluster, err := hubprocess.Requires(names.LabelClusterName, selection.Exists)
	if err != nil {
		return cache.Options{}, err
	}
	ofAddon, err := hubprocess.Requires(names.LabelAddonName, selection.Exists)
	if err != nil {
		return cache.Options{}, err
	}
	ofToken, err := hubprocess.Requires(tokens.LabelInfrastructure, selection.Exists)
	if err != nil {
		return cache.Options{}, err
	}
	ofConfig, err := hubprocess.Requires(names.LabelConfigRevision, selection.Exists)
	if err != nil {
		return cache.Options{}, err
	}
	t := &hubprocess.Trims{}
	return cache.Options{
		// Configurations, above all, of which tenants have any number.
		DefaultTransform: hubprocess.Bounded(packed(t.Other)),
		ByObject: map[client.Object]cache.ByObject{
			&workv1.ManifestWork{}: {
				Label: ofAddon, Transform: hubprocess.Annotated(works.Trim(&t.Shared)),
			},
			&certificatesv1.CertificateSigningRequest{}: {Label: approval.Selector(), Transform: approve.Trim},
			// Selected by name, so that a lease without our label is cached as well.
			&coordinationv1.Lease{}: {
				Field:     fields.OneTermEqualSelector("metadata.name", lease.ClusterLease),
				Transform: hubprocess.Annotated(cluster.TrimLease),
			},
			&rbacv1.ClusterRole{}:        {Label: ofCluster},
			&rbacv1.ClusterRoleBinding{}: {Label: ofCluster},
			&clusterv1beta1.Placement{}: {
				Transform: placement.Bound(hubprocess.Annotated(fleet.KeepEdited(t.Other))),
			},
			&clusterv1beta1.PlacementDecision{}:        {Transform: hubprocess.Annotated(fleet.TrimDecision)},
			&clusterv1beta2.ManagedClusterSetBinding{}: {Transform: hubprocess.Annotated(t.Other)},
			// Only one of the two is watched: the stored version. A policy bounds the annotations, which may be values.
			&addonv1alpha1.ManagedClusterAddOn{}: {Transform: hubprocess.Bounded(trimAddOn(t))},
			&addonv1beta1.ManagedClusterAddOn{}:  {Transform: hubprocess.Bounded(trimAddOn(t))},
			// Placements select clusters by any label. Policies bound those that agents write.
			&clusterv1.ManagedCluster{}:  {Transform: fleet.KeepWritten(t.Cluster)},
			&rbacv1.RoleBinding{}:        {Transform: hubprocess.Annotated(t.Binding)},
			&corev1.ServiceAccount{}:     {Label: ofToken, Transform: hubprocess.Annotated(t.Account)},
			&appsv1.ControllerRevision{}: {Label: ofConfig, Namespaces: in(cmp.Or(home, names.NamespaceHub))},
			&rbacv1.Role{}:               {Label: ofToken, Transform: hubprocess.Annotated(t.Role)},
		},
	}, nil
}

// packed returns a transformation that packs configurations before the next one.
func packed(next func(any) (any, error)) func(any) (any, error) {
	return func(in any) (any, error) {
		out, err := confighash.Pack(in)
		if err != nil {
			return out, err
		}
		return next(out)
	}
}

// trimAddOn returns the transformation of ManagedClusterAddOns.
func trimAddOn(t *hubprocess.Trims) func(any) (any, error) {
	return func(in any) (any, error) {
		out, err := install.TrimAddOn(in)
		if err != nil {
			return out, err
		}
		return t.AddOn(out)
	}
}

// in restricts a kind to one namespace.
func in(namespace string) map[string]cache.Config { return map[string]cache.Config{namespace: {}} }

// foreignWorkOptions configures the second cache: the metadata of ManifestWorks that do not belong to add-ons.
func foreignWorkOptions() (cache.Options, error) {
	foreign, err := hubprocess.Requires(names.LabelAddonName, selection.DoesNotExist)
	if err != nil {
		return cache.Options{}, err
	}
	return cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&workv1.ManifestWork{}: {Label: foreign, Transform: hubprocess.Annotated(trimForeignWork)},
		},
	}, nil
}

// trimForeignWork keeps only the metadata of a ManifestWork that its deletion needs.
func trimForeignWork(in any) (any, error) {
	o, isObject := in.(metav1.Object)
	if !isObject {
		return in, nil // a transformation must pass on what it does not know
	}
	hubprocess.DropNoise(o)
	o.SetLabels(nil)
	o.SetOwnerReferences(nil)
	return in, nil
}
