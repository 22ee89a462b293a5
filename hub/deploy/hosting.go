package deploy

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// indexHost finds the add-ons that name a cluster as their host.
const indexHost = "spokelet.io/hosting-cluster"

// hostKeys files an add-on under the cluster that it names as its host.
func hostKeys(o client.Object) []string {
	if host := o.GetAnnotations()[names.AnnotationHostingCluster]; host != "" {
		return []string{host}
	}
	return nil
}

// observeHost reads the cluster that the add-on names as its host; nil when it names none, or one that does not exist.
func (r *Reconciler) observeHost(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn,
) (*clusterv1.ManagedCluster, error) {
	name := addOn.Annotations[names.AnnotationHostingCluster]
	if name == "" {
		return nil, nil //nolint:nilnil // no host is a good answer
	}
	return reconcile.Get(ctx, r.Client, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{},
		client.UnsafeDisableDeepCopy)
}

// concludeHost says whether the cluster that the add-on names as its host can be one (contract, hub 9.3). The condition
// goes with the annotation.
func concludeHost(f facts, conditions *[]metav1.Condition, set func(metav1.Condition)) {
	name := f.addOn.Annotations[names.AnnotationHostingCluster]
	if name == "" {
		meta.RemoveStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnHostingClusterValidity)
		return
	}
	c := metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnHostingClusterValidity, Status: metav1.ConditionFalse,
		Reason: addonv1beta1.HostingClusterValidityReasonInvalid,
	}
	switch {
	case f.host == nil:
		c.Message = fmt.Sprintf("There is no ManagedCluster %q, which annotation %s names as the hosting cluster. "+
			"Correct the annotation, or register that cluster.", name, names.AnnotationHostingCluster)
	case !f.host.DeletionTimestamp.IsZero():
		c.Message = fmt.Sprintf("ManagedCluster %s, which annotation %s names as the hosting cluster, is being deleted. "+
			"Name another one.", name, names.AnnotationHostingCluster)
	case !f.host.Spec.HubAcceptsClient:
		c.Message = fmt.Sprintf("The hub does not accept cluster %s, which annotation %s names as the hosting cluster. Set "+
			"spec.hubAcceptsClient of the ManagedCluster to true, or name another one.", name, names.AnnotationHostingCluster)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, addonv1beta1.HostingClusterValidityReasonValid
		c.Message = fmt.Sprintf("The hub accepts hosting cluster %s.", name)
	}
	set(c)
}
