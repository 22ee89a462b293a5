package work_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A user whose works have an executor that may write admission policies, and may read no Secret, would read Secrets by
// the message of a policy: the API server asks who writes a binding for the right to read the params, and the agent may
// read all Secrets.
//
// Shows: work/executor-admission
func TestAnExecutorReadsNoSecretByAnAdmissionPolicy(t *testing.T) {
	e := newEnv(t)
	rules := []rbacv1.PolicyRule{rule("admissionregistration.k8s.io", "validatingadmissionpolicies", allVerbs...),
		rule("admissionregistration.k8s.io", "validatingadmissionpolicybindings", allVerbs...)}
	e.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: e.cluster, Labels: map[string]string{"open-cluster-management.io/aggregate-to-work": "true"},
	}, Rules: rules})
	e.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: e.cluster + "-team"}, Rules: rules})
	e.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: e.cluster + "-team"},
		Subjects:   []rbacv1.Subject{e.account()}, RoleRef: roleRef(e.cluster + "-team"),
	})
	e.role("maps", rule("", "configmaps", allVerbs...))
	e.bind("maps", e.account())
	victim := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: e.cluster + "-victim"},
		StringData: map[string]string{"password": "of-kube-system"},
	}
	e.create(victim)
	policy := func(name, param string) client.Object {
		return e.unstructuredOf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  %[3]s
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  matchConditions:
  - {name: mine, expression: "object.metadata.namespace == '%[2]s' && object.metadata.name == 'leak'"}
  validations:
  - expression: "object.metadata.name != 'leak' || has(object.data)"
`, name, e.cluster, param)
	}
	secrets, harmless := policy(e.cluster, "paramKind: {apiVersion: v1, kind: Secret}"), policy(e.cluster+"-plain", "")
	binding := e.unstructuredOf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  validationActions: [Deny]
  paramRef: {name: %[1]s-victim, namespace: kube-system, parameterNotFoundAction: Deny}
`, e.cluster)

	e.start()
	w := e.executed("w", secrets, harmless, binding)
	e.create(w)
	e.eventually("an answer about the policies", func() bool {
		return e.get(w, e.cluster, "w") && len(w.Status.ResourceStatus.Manifests) == 3 &&
			manifestCondition(w, 1, workv1.ManifestApplied).Status == metav1.ConditionTrue
	})
	refused := manifestCondition(w, 0, workv1.ManifestApplied)
	assert.Equal(t, metav1.ConditionFalse, refused.Status)
	assert.Contains(t, refused.Message, `must have "get" permission on all objects of the referenced paramKind`)
	assert.Equal(t, metav1.ConditionFalse, manifestCondition(w, 2, workv1.ManifestApplied).Status)
	require.False(t, e.get(secrets, "", e.cluster), "the policy is there")
	require.False(t, e.get(binding, "", e.cluster), "the binding is there")
}
