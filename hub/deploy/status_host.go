package deploy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

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
	case hostReady:
		c.Status, c.Reason = metav1.ConditionTrue, addonv1beta1.HostingClusterValidityReasonValid
		c.Message = fmt.Sprintf("The hub accepts hosting cluster %s.", name)
	}
	set(c)
}
