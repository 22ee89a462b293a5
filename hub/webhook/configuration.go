package webhook

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// workAdmissionName is the name of the webhook configuration for ManifestWorks (manifests/hub/work-webhook), which
	// earlier versions of the hub manager applied themselves.
	workAdmissionName = "manifestworks.admission.spokelet.io"
	// clusterAdmissionName is the name of two former webhook configurations for ManagedClusters, which policies have
	// replaced.
	clusterAdmissionName = "managedclusters.admission.spokelet.io"
)

// Configurations returns the webhook configurations of this and earlier versions, by name. The hub manager has no right
// to any of them.
func Configurations() []client.Object {
	former := metav1.ObjectMeta{Name: clusterAdmissionName}
	return []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: former},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: former},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: workAdmissionName}},
	}
}
