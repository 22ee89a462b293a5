package work_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// apiThatAsksWho stands for an API server behind that of Kubernetes, such as that of OpenShift, which decides by who
// asks: here the executor of the test may write nothing, and the agent everything.
const apiThatAsksWho = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [%[2]s], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: ["*"]}
  validations:
  - expression: request.userInfo.username != "system:serviceaccount:%[1]s:executor"
    message: the asker does not have these rights
    reason: Forbidden
`

const bindingOfThatPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`

// Shows: security/executor-other-apis
func TestAnExecutorCannotWriteByTheAgentsRightsWhatAnotherAPIServerDeniesToIt(t *testing.T) {
	t.Parallel()
	for name, group := range map[string]func(e *env) string{
		"roles of OpenShift": func(*env) string { return "authorization.openshift.io" },
		"any other group":    func(e *env) string { return e.cluster + ".example.com" },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			group := group(e)
			definition := fickle(group)
			definition.Name = "rolebindings." + group
			definition.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "rolebindings", Kind: "RoleBinding"}
			define(t, definition)
			e.create(&rbacv1.ClusterRole{
				ObjectMeta: metav1.ObjectMeta{
					Name: e.cluster, Labels: map[string]string{"open-cluster-management.io/aggregate-to-work": "true"},
				},
				Rules: []rbacv1.PolicyRule{rule(group, "*", "*")},
			})
			e.create(e.unstructuredOf(apiThatAsksWho, e.cluster, group))
			e.create(e.unstructuredOf(bindingOfThatPolicy, e.cluster))
			e.role("writer", rule(group, "rolebindings", allVerbs...))
			e.bind("writer", e.account())
			object := e.unstructuredOf("{apiVersion: %s/v1, kind: RoleBinding, metadata: {name: %s, namespace: %s}, "+
				"roleRef: {name: admin}}", group, "one", e.cluster)
			// The policy is in force once it refuses the executor itself.
			as := plane.Admin()
			as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + e.cluster + ":executor"}
			executor, err := client.New(as, client.Options{})
			require.NoError(t, err)
			suite.Eventually(t, suite.True("the policy refuses the executor", func() bool {
				err := executor.Create(t.Context(), object.DeepCopy(), client.DryRunAll)
				return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
			}))
			e.start()
			w := e.executed("w", object)
			e.create(w)
			e.applies(w, no)
			assert.False(t, e.get(object.DeepCopy(), e.cluster, "one"), "the agent did not write it for the executor")
		})
	}
}
