package manifest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestResourcesRankAsTheirKinds(t *testing.T) {
	for kind, r := range map[string]struct{ group, resource string }{
		"Namespace":                        {"", "namespaces"},
		"PersistentVolume":                 {"", "persistentvolumes"},
		"PriorityClass":                    {"scheduling.k8s.io", "priorityclasses"},
		"StorageClass":                     {"storage.k8s.io", "storageclasses"},
		"PodSecurityPolicy":                {"policy", "podsecuritypolicies"},
		"CustomResourceDefinition":         {"apiextensions.k8s.io", "customresourcedefinitions"},
		"ClusterRole":                      {"rbac.authorization.k8s.io", "clusterroles"},
		"ClusterRoleBinding":               {"rbac.authorization.k8s.io", "clusterrolebindings"},
		"Role":                             {"rbac.authorization.k8s.io", "roles"},
		"RoleBinding":                      {"rbac.authorization.k8s.io", "rolebindings"},
		"NetworkPolicy":                    {"networking.k8s.io", "networkpolicies"},
		"ResourceQuota":                    {"", "resourcequotas"},
		"LimitRange":                       {"", "limitranges"},
		"PodDisruptionBudget":              {"policy", "poddisruptionbudgets"},
		"ServiceAccount":                   {"", "serviceaccounts"},
		"Secret":                           {"", "secrets"},
		"ConfigMap":                        {"", "configmaps"},
		"PersistentVolumeClaim":            {"", "persistentvolumeclaims"},
		"Service":                          {"", "services"},
		"DaemonSet":                        {"apps", "daemonsets"},
		"Pod":                              {"", "pods"},
		"ReplicationController":            {"", "replicationcontrollers"},
		"ReplicaSet":                       {"apps", "replicasets"},
		"Deployment":                       {"apps", "deployments"},
		"HorizontalPodAutoscaler":          {"autoscaling", "horizontalpodautoscalers"},
		"StatefulSet":                      {"apps", "statefulsets"},
		"Job":                              {"batch", "jobs"},
		"CronJob":                          {"batch", "cronjobs"},
		"APIService":                       {"apiregistration.k8s.io", "apiservices"},
		"MutatingWebhookConfiguration":     {"admissionregistration.k8s.io", "mutatingwebhookconfigurations"},
		"ValidatingWebhookConfiguration":   {"admissionregistration.k8s.io", "validatingwebhookconfigurations"},
		"ValidatingAdmissionPolicy":        {"admissionregistration.k8s.io", "validatingadmissionpolicies"},
		"ValidatingAdmissionPolicyBinding": {"admissionregistration.k8s.io", "validatingadmissionpolicybindings"},
		"Ingress":                          {"networking.k8s.io", "ingresses"},
		"Widget":                           {"example.com", "widgets"},
	} {
		assert.Equal(t, Rank(kind), ResourceRank(r.group, r.resource), kind)
	}
	assert.Equal(t, rankOther, ResourceRank("iam.example.com", "roles"), "a custom resource may be called anything")
}
