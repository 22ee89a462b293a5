package manifests

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

// workRights returns, as "resource.group", the verbs that a ClusterRole of the work agent gives, sorted.
func workRights(t *testing.T, name string) map[string][]string {
	t.Helper()
	rights := map[string][]string{}
	for _, object := range split(t, Klusterlet()...) {
		if object["kind"] != "ClusterRole" {
			continue
		}
		role := into[rbacv1.ClusterRole](t, object)
		if role.Name != "open-cluster-management:klusterlet-work:"+name {
			continue
		}
		for _, rule := range role.Rules {
			assert.Empty(t, rule.ResourceNames)
			assert.Empty(t, rule.NonResourceURLs)
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					require.NotContains(t, rights, resource+"."+group, "one rule for each resource")
					rights[resource+"."+group] = slices.Sorted(slices.Values(rule.Verbs))
				}
			}
		}
	}
	require.NotEmpty(t, rights, "no ClusterRole %s", name)
	return rights
}

// TestTheWorkAgentHoldsWhatItUses: what the agent cannot do without is its own record and the questions about
// executors, and no right to any object that a work may name.
// Shows: work/shipped-rights
func TestTheWorkAgentHoldsWhatItUses(t *testing.T) {
	const group = ".work.open-cluster-management.io"
	assert.Equal(t, map[string][]string{
		"appliedmanifestworks" + group:              {"create", "delete", "get", "list", "patch", "watch"},
		"appliedmanifestworks/status" + group:       {"update"},
		"subjectaccessreviews.authorization.k8s.io": {"create"},
		"serviceaccounts.":                          {"impersonate"},
	}, workRights(t, "agent"))
}

// TestWhatWorksMayApplyTheyMayKeepAndDelete: of every kind that works may apply without further ado, the agent may do
// all that it ever does to an object: watch it, write it by each strategy, take its owner from it, and delete it.
// Nothing more is given, but for the two verbs without which RBAC refuses to hand out rights.
// Shows: work/shipped-rights
func TestWhatWorksMayApplyTheyMayKeepAndDelete(t *testing.T) {
	const rbac = ".rbac.authorization.k8s.io"
	rights := workRights(t, "execution")
	for resource, verbs := range rights {
		want := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
		if resource == "roles"+rbac || resource == "clusterroles"+rbac {
			want = []string{"bind", "create", "delete", "escalate", "get", "list", "patch", "update", "watch"}
		}
		assert.Equal(t, want, verbs, resource)
	}
	for _, resource := range []string{
		"customresourcedefinitions.apiextensions.k8s.io", "namespaces.", "roles" + rbac, "rolebindings" + rbac,
		"clusterroles" + rbac, "clusterrolebindings" + rbac, "priorityclasses.scheduling.k8s.io",
		"servicemonitors.monitoring.coreos.com", "oauthclients.oauth.openshift.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io",
		"validatingwebhookconfigurations.admissionregistration.k8s.io",
	} {
		assert.Contains(t, rights, resource)
	}
}
