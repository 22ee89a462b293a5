package webhook

import (
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// WorkAdmissionName names the webhook configuration of ManifestWorks.
	WorkAdmissionName = "manifestworks.admission.spokelet.io"
	// clusterAdmissionName named the two webhook configurations of ManagedClusters, before policies guarded them.
	clusterAdmissionName = "managedclusters.admission.spokelet.io"
	// timeoutSeconds is how long the API server waits for us.
	timeoutSeconds = 10

	// respecified selects what must be checked: the API server counts a generation for every change but that of
	// metadata and status, so that the finalizers of agents never wait for us.
	respecified = "request.operation == 'CREATE' || " +
		"object.metadata.?generation.orValue(0) != oldObject.metadata.?generation.orValue(0)"
)

// Serving says where the API server finds the webhook, and who needs none.
type Serving struct {
	// At returns the client configuration for a path of ours.
	At func(path string) admissionregistrationv1.WebhookClientConfig
	// User is the hub manager itself, whose writes are never sent here: its own work must go on without the webhook.
	User string
	// Owners are the owners of the configurations, which go with them.
	Owners []metav1.OwnerReference
}

// ValidatingWorks returns the configuration that has the API server ask for checks of ManifestWorks. While nobody
// answers, works are written unchecked, which differs from OCM: the check helps authors and guards nothing, because who
// may do what is for policies to say, and an agent tells of a manifest that it cannot apply. A hub manager that was
// removed, or is down, must not keep everybody from writing works.
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

// Obsolete returns the webhook configurations that earlier versions applied, by name. Nothing serves them any more, so
// the API server would refuse every write of ManagedClusters for their sake.
func Obsolete() []client.Object {
	named := metav1.ObjectMeta{Name: clusterAdmissionName}
	return []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: named},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: named},
	}
}
