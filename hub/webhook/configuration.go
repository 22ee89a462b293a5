package webhook

import (
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

const (
	// AdmissionName names both webhook configurations.
	AdmissionName = "managedclusters.admission.spokelet.io"
	// timeoutSeconds is how long the API server waits for us.
	timeoutSeconds = 10

	// set and wasSet are the cluster set of a cluster, as it is to be and as it was, in CEL.
	set    = "object.metadata.?labels[?'" + clusterv1beta2.ClusterSetLabel + "'].orValue('')"
	wasSet = "oldObject.metadata.?labels[?'" + clusterv1beta2.ClusterSetLabel + "'].orValue('')"
	// incomplete selects what may have to be completed. A cluster that is being deleted needs nothing more.
	incomplete = "request.operation == 'CREATE' || (!has(object.metadata.deletionTimestamp) && (" + set + " == '' || " +
		"object.?spec.?taints.orValue([]) != oldObject.?spec.?taints.orValue([])))"
	// checked selects what must be checked.
	checked = "request.operation == 'CREATE' || " + set + " != " + wasSet + " || " +
		"(object.?spec.?hubAcceptsClient.orValue(false) && !oldObject.?spec.?hubAcceptsClient.orValue(false)) || " +
		"object.?spec.?managedClusterClientConfigs.orValue([]) != " +
		"oldObject.?spec.?managedClusterClientConfigs.orValue([])"
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

// Mutating returns the configuration that has the API server ask for completions.
func Mutating(s Serving) *admissionregistrationv1.MutatingWebhookConfiguration {
	fail, none, equivalent := policies()
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration",
		},
		ObjectMeta: metav1.ObjectMeta{Name: AdmissionName, OwnerReferences: s.Owners},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "complete." + AdmissionName, ClientConfig: s.At(PathMutate), Rules: rules(),
			FailurePolicy: &fail, SideEffects: &none, MatchPolicy: &equivalent, TimeoutSeconds: new(int32(timeoutSeconds)),
			AdmissionReviewVersions: []string{"v1"}, MatchConditions: conditions(s, "to-be-completed", incomplete),
		}},
	}
}

// Validating returns the configuration that has the API server ask for checks.
func Validating(s Serving) *admissionregistrationv1.ValidatingWebhookConfiguration {
	fail, none, equivalent := policies()
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration",
		},
		ObjectMeta: metav1.ObjectMeta{Name: AdmissionName, OwnerReferences: s.Owners},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "check." + AdmissionName, ClientConfig: s.At(PathValidate), Rules: rules(),
			FailurePolicy: &fail, SideEffects: &none, MatchPolicy: &equivalent, TimeoutSeconds: new(int32(timeoutSeconds)),
			AdmissionReviewVersions: []string{"v1"}, MatchConditions: conditions(s, "to-be-checked", checked),
		}},
	}
}

// policies are those of the contract: what cannot be checked is not written.
func policies() (
	admissionregistrationv1.FailurePolicyType, admissionregistrationv1.SideEffectClass,
	admissionregistrationv1.MatchPolicyType,
) {
	return admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Equivalent
}

// rules select ManagedClusters that are created or changed, not their status, so that nothing else ever waits for us.
func rules() []admissionregistrationv1.RuleWithOperations {
	scope := admissionregistrationv1.ClusterScope
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{
			admissionregistrationv1.Create, admissionregistrationv1.Update,
		},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{clusterv1.GroupName}, APIVersions: []string{clusterv1.GroupVersion.Version},
			Resources: []string{"managedclusters"}, Scope: &scope,
		},
	}}
}

// conditions leave out the hub manager, and what does not match the expression.
func conditions(s Serving, name, expression string) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{
		{Name: "not-by-the-hub-manager", Expression: "request.userInfo.username != " + strconv.Quote(s.User)},
		{Name: name, Expression: expression},
	}
}
