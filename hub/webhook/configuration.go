package webhook

import (
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// WorkAdmissionName is the name of the webhook configuration for ManifestWorks.
	WorkAdmissionName = "manifestworks.admission.spokelet.io"
	// clusterAdmissionName is the name of two former webhook configurations for ManagedClusters, which policies have
	// replaced.
	clusterAdmissionName = "managedclusters.admission.spokelet.io"
	// timeoutSeconds is the timeout of the API server.
	timeoutSeconds = 10

	// respecified matches requests that change the spec: only these increase the generation, so that writes of finalizers
	// never wait for the webhook.
	respecified = "request.operation == 'CREATE' || " +
		"object.metadata.?generation.orValue(0) != oldObject.metadata.?generation.orValue(0)"
)

// Serving is the address of the webhook, and who is exempt.
type Serving struct {
	// At returns the client configuration for a path.
	At func(path string) admissionregistrationv1.WebhookClientConfig
	// User is the hub manager, whose own writes are exempt, so that its work does not depend on the webhook.
	User string
	// Owners are the owners of the configurations, which are deleted with them.
	Owners []metav1.OwnerReference
}

// ValidatingWorks returns the webhook configuration for ManifestWorks. Its failure policy is Ignore, unlike in OCM: the
// check helps authors and protects nothing. Policies decide who may do what, and an agent reports manifests that it
// cannot apply. A hub manager that was removed, or is down, must not block all writes of works.
func ValidatingWorks(s Serving) *admissionregistrationv1.ValidatingWebhookConfiguration {
	ignore, none := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone
	equivalent, scope := admissionregistrationv1.Equivalent, admissionregistrationv1.NamespacedScope
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration",
		},
		ObjectMeta: metav1.ObjectMeta{Name: WorkAdmissionName, OwnerReferences: s.Owners},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "check." + WorkAdmissionName, ClientConfig: s.At(PathValidateWork),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{
					admissionregistrationv1.Create, admissionregistrationv1.Update,
				},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{workv1.GroupName}, APIVersions: []string{workv1.GroupVersion.Version},
					Resources: []string{"manifestworks"}, Scope: &scope,
				},
			}},
			FailurePolicy: &ignore, SideEffects: &none, MatchPolicy: &equivalent, TimeoutSeconds: new(int32(timeoutSeconds)),
			AdmissionReviewVersions: []string{"v1"},
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: "not-by-the-hub-manager", Expression: "request.userInfo.username != " + strconv.Quote(s.User)},
				{Name: "to-be-checked", Expression: respecified},
			},
		}},
	}
}

// Obsolete returns the webhook configurations of earlier versions, by name. No process serves them any more, so the API
// server would refuse every write of ManagedClusters because of them.
func Obsolete() []client.Object {
	named := metav1.ObjectMeta{Name: clusterAdmissionName}
	return []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: named},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: named},
	}
}
