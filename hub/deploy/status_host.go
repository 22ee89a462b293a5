package deploy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/deploy/hosting"
	"github.com/spokelet/spokelet/internal/names"
)

// reasonNotConsented means that the hosting cluster does not host the add-ons of the managed cluster. It is Spokelet's
// own addition.
const reasonNotConsented = "NotConsented"

// concludeHost sets the condition on the hosting cluster of the add-on (docs/reference/hub.md, "Hosted add-ons"). It is
// removed with the annotation.
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
	switch hostOf(f) {
	case hostNone:
	case hostMissing:
		c.Message = fmt.Sprintf("There is no ManagedCluster %q, which annotation %s names as the hosting cluster. "+
			"Correct the annotation, or register that cluster.", name, names.AnnotationHostingCluster)
	case hostDeleting:
		c.Message = fmt.Sprintf("ManagedCluster %s, which annotation %s names as the hosting cluster, is being deleted. "+
			"Name another one.", name, names.AnnotationHostingCluster)
	case hostRefused:
		c.Message = fmt.Sprintf("The hub does not accept cluster %s, which annotation %s names as the hosting cluster: its "+
			"works stay as they are. Set spec.hubAcceptsClient of the ManagedCluster to true, or name another one.", name,
			names.AnnotationHostingCluster)
	case hostUnwilling:
		c.Reason = reasonNotConsented
		c.Message = fmt.Sprintf("ManagedCluster %s, which annotation %s names as the hosting cluster, does not consent to "+
			"host add-ons of cluster %s: nothing is written there, and works there stay as they are. An administrator who may "+
			"accept cluster %s consents by its annotation %s, a list of clusters separated by commas or %q: kubectl annotate "+
			"managedcluster %s --overwrite %s=%s", name, names.AnnotationHostingCluster, f.addOn.Namespace, name,
			names.AnnotationHosts, hosting.Everyone, name, names.AnnotationHosts, hosting.Listing(f.host, f.addOn.Namespace))
	case hostReady:
		c.Status, c.Reason = metav1.ConditionTrue, addonv1beta1.HostingClusterValidityReasonValid
		c.Message = fmt.Sprintf("The hub accepts hosting cluster %s.", name)
	}
	set(c)
}
