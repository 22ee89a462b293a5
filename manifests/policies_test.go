package manifests_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
)

func TestEveryPolicyFailsClosedAndIsBoundEverywhere(t *testing.T) {
	for _, files := range [][][]byte{manifests.Policies(), manifests.WorksWithoutExecutor()} {
		var policies, bound []string
		for _, u := range hubObjects(t, files) {
			switch u.GetKind() {
			case "ValidatingAdmissionPolicy":
				policy := typed[admissionregistrationv1.ValidatingAdmissionPolicy](t, u)
				policies = append(policies, policy.Name)
				require.NotNil(t, policy.Spec.FailurePolicy, policy.Name)
				assert.Equal(t, admissionregistrationv1.Fail, *policy.Spec.FailurePolicy, policy.Name)
				for _, v := range policy.Spec.Validations {
					assert.NotEmpty(t, v.Message, "%s: %s", policy.Name, v.Expression)
				}
			case "ValidatingAdmissionPolicyBinding":
				binding := typed[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, u)
				bound = append(bound, binding.Spec.PolicyName)
				assert.Equal(t, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
					binding.Spec.ValidationActions, binding.Name)
				assert.Nil(t, binding.Spec.MatchResources, binding.Name)
			default:
				assert.Fail(t, "a folder of policies holds nothing else", u.GetKind())
			}
		}
		assert.NotEmpty(t, policies)
		assert.ElementsMatch(t, policies, bound)
	}
}

// The API server evaluates all match conditions of a policy, whatever the first one says. With 10,000 clusters, and so as
// many ClusterRoleBindings, the question for one right took it milliseconds in each write of a cluster or a work.
func TestAPolicyThatAsksForARightHasOneMatchCondition(t *testing.T) {
	asks := 0
	for _, u := range hubObjects(t, append(manifests.Policies(), manifests.WorksWithoutExecutor()...)) {
		if u.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		policy := typed[admissionregistrationv1.ValidatingAdmissionPolicy](t, u)
		for _, c := range policy.Spec.MatchConditions {
			if strings.Contains(c.Expression, "authorizer") {
				asks++
				assert.Len(t, policy.Spec.MatchConditions, 1, policy.Name)
			}
		}
	}
	assert.Positive(t, asks)
}

func TestTheHubManagerMayReadExactlyThePoliciesThatAreShipped(t *testing.T) {
	var shipped, allowed []string
	for _, u := range hubObjects(t, manifests.Policies()) {
		shipped = append(shipped, u.GetName())
	}
	for _, u := range hubObjects(t, manifests.Hub()) {
		if u.GetKind() == "ClusterRole" && u.GetName() == "open-cluster-management:spokelet-hub:policy-check" {
			rules := typed[rbacv1.ClusterRole](t, u).Rules
			require.Len(t, rules, 1)
			assert.Equal(t, []string{"get"}, rules[0].Verbs)
			allowed = rules[0].ResourceNames
		}
	}
	slices.Sort(shipped)
	assert.Equal(t, slices.Compact(shipped), allowed, "policy-check.yaml names every policy, in order")
}

func TestPoliciesForTheDefaultNamesAreThoseThatAreShipped(t *testing.T) {
	same := manifests.PoliciesFor(names.NamespaceHub, names.ServiceAccountManager, names.ServiceAccountAddons)
	assert.Equal(t, manifests.Policies(), same)
}

func TestPoliciesAreRenderedForOtherNames(t *testing.T) {
	for sentence, tc := range map[string]struct{ namespace, manager, addons string }{
		"another namespace":                {"elsewhere", names.ServiceAccountManager, names.ServiceAccountAddons},
		"other accounts":                   {names.NamespaceHub, "manager", "addons"},
		"names that contain the old ones":  {"x-" + names.NamespaceHub, names.ServiceAccountManager + "-2", "addons"},
		"accounts that change their roles": {"elsewhere", names.ServiceAccountAddons, names.ServiceAccountManager},
	} {
		t.Run(sentence, func(t *testing.T) {
			rendered := string(bytes.Join(manifests.PoliciesFor(tc.namespace, tc.manager, tc.addons), nil))
			shipped := string(bytes.Join(manifests.Policies(), nil))
			account := regexp.MustCompile(`system:serviceaccount:([a-z0-9-]+):([a-z0-9.-]+)`)
			was, is := account.FindAllStringSubmatch(shipped, -1), account.FindAllStringSubmatch(rendered, -1)
			require.NotEmpty(t, was)
			require.Len(t, is, len(was))
			for i := range was {
				want := was[i][1:] // an account that is none of the hub manager's, such as those with which clusters join
				if was[i][1] == names.NamespaceHub {
					accounts := map[string]string{
						names.ServiceAccountManager: tc.manager, names.ServiceAccountAddons: tc.addons,
					}
					want = []string{tc.namespace, accounts[was[i][2]]}
				}
				assert.Equal(t, want, is[i][1:], was[i][0])
			}
			hubObjects(t, manifests.PoliciesFor(tc.namespace, tc.manager, tc.addons))
		})
	}
}

func TestThePolicyReservesTheNamesThatTheHubRefuses(t *testing.T) {
	list := regexp.MustCompile(`variables\.cluster in \[([^\]]*)\]`)
	var reserved []string
	for _, file := range manifests.Policies() {
		for _, found := range list.FindAllSubmatch(file, -1) {
			for _, name := range regexp.MustCompile(`'([^']+)'`).FindAllSubmatch(found[1], -1) {
				reserved = append(reserved, string(name[1]))
			}
		}
	}
	assert.ElementsMatch(t, append(names.ReservedClusters(), "default", "openshift"), reserved)
}

// What it announced once and could not take back, an administrator applies now (manifests/hub/work-webhook).
func TestTheHubManagerWritesNoWebhookConfiguration(t *testing.T) {
	for _, u := range hubObjects(t, manifests.Hub()) {
		if u.GetKind() != "ClusterRole" {
			continue
		}
		for _, rule := range typed[rbacv1.ClusterRole](t, u).Rules {
			for _, resource := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "*"} {
				assert.NotContains(t, rule.Resources, resource, u.GetName())
			}
		}
	}
}
