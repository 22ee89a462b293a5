package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	workv1 "open-cluster-management.io/api/work/v1"
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
		assert.Equal(t, rank(kind), resourceRank(r.group, r.resource), kind)
	}
	assert.Equal(t, rankOther, resourceRank("iam.example.com", "roles"), "a custom resource may be called anything")
}

func TestDeletionOrder(t *testing.T) {
	entry := func(group, resource, name string) workv1.AppliedManifestResourceMeta {
		return workv1.AppliedManifestResourceMeta{ResourceIdentifier: workv1.ResourceIdentifier{
			Group: group, Resource: resource, Name: name,
		}}
	}
	list := []workv1.AppliedManifestResourceMeta{
		entry("", "configmaps", "b"), entry("", "configmaps", "a"), entry("", "namespaces", "n"),
		entry("apiextensions.k8s.io", "customresourcedefinitions", "widgets.example.com"),
		entry("apps", "deployments", "operator"), entry("example.com", "widgets", "w"),
		entry("rbac.authorization.k8s.io", "roles", "r"),
	}
	order := deletionOrder(list)
	var said []string
	for len(order) > 0 {
		end := rankEnd(order)
		text := ""
		for _, e := range order[:end] {
			text += e.Resource + "/" + e.Name + " "
		}
		said, order = append(said, text), order[end:]
	}
	assert.Equal(t, []string{
		"widgets/w ", "deployments/operator ", "configmaps/a configmaps/b ", "roles/r ",
		"namespaces/n customresourcedefinitions/widgets.example.com ",
	}, said)
	assert.Equal(t, "b", list[0].Name, "the list itself stays as it was")
	assert.Zero(t, rankEnd(nil))
}

func TestHowLongARankHoldsUpTheNext(t *testing.T) {
	for name, c := range map[string]struct {
		held []hold
		want time.Time
	}{
		"not at all when it is gone":         {nil, time.Time{}},
		"for the patience":                   {[]hold{heldThing("a", epoch)}, epoch.Add(time.Minute)},
		"from the last that was told to go":  {[]hold{heldThing("a", epoch.Add(time.Hour)), heldThing("b", epoch)}, epoch.Add(61 * time.Minute)},
		"not at all when nobody knows since": {[]hold{heldThing("a", time.Time{})}, time.Time{}.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			left := drained{held: c.held}
			assert.Equal(t, c.want, left.holdsUntil(time.Minute))
		})
	}
}

func TestOverdueObjects(t *testing.T) {
	left := drained{held: []hold{heldThing("old", epoch), heldThing("new", epoch.Add(time.Second))}}
	assert.Empty(t, left.overdue(epoch))
	assert.Len(t, left.overdue(epoch.Add(blockedAfter)), 1)
	assert.Len(t, left.overdue(epoch.Add(time.Hour)), 2)
	assert.Len(t, left.held, 2, "what is held stays so")
}
