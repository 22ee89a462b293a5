package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shipped is one policy with its binding, as a file has them.
const shipped = `# A comment.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: p
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}
  matchConditions:
    - name: who
      expression: request.userInfo.username == 'system:serviceaccount:ns:me'
  variables:
    - {name: v, expression: "true"}
  validations:
    - {expression: variables.v, message: no}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: b
spec:
  policyName: p
  validationActions: [Deny]
`

func parsed(t *testing.T) set {
	t.Helper()
	s, err := parse([][]byte{[]byte(shipped)})
	require.NoError(t, err)
	return s
}

func TestProblems(t *testing.T) {
	type (
		policySpec  = admissionregistrationv1.ValidatingAdmissionPolicySpec
		bindingSpec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec
	)
	policy := func(edit func(*policySpec)) func(set) { return func(s set) { edit(&s.policies["p"].Spec) } }
	binding := func(edit func(*bindingSpec)) func(set) { return func(s set) { edit(&s.bindings["b"].Spec) } }
	for sentence, tc := range map[string]struct {
		change func(set)
		says   string
	}{
		"what is shipped is in force": {change: func(set) {}},
		"so it is as the API server returns it": {change: policy(func(s *policySpec) {
			*s = *defaulted(s)
			s.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{}
		})},
		"so it is with other words": {change: policy(func(s *policySpec) { s.Validations[0].Message = "nein" })},
		"so it is with a binding that warns as well": {change: binding(func(s *bindingSpec) {
			s.ValidationActions = append(s.ValidationActions, admissionregistrationv1.Audit)
			s.MatchResources = &admissionregistrationv1.MatchResources{ObjectSelector: &metav1.LabelSelector{}}
		})},
		"a policy is missing": {change: func(s set) { delete(s.policies, "p") }, says: "ValidatingAdmissionPolicy p is missing"},
		"a policy is for another account": {
			change: policy(func(s *policySpec) {
				s.MatchConditions[0].Expression = "request.userInfo.username == 'system:serviceaccount:ns:you'"
			}),
			says: "ValidatingAdmissionPolicy p was written for system:serviceaccount:ns:you; the hub manager needs it for " +
				"system:serviceaccount:ns:me",
		},
		"a policy is for nobody": {
			change: policy(func(s *policySpec) { s.MatchConditions[0].Expression = "true" }), says: "was written for no ServiceAccount",
		},
		"a policy has a condition more": {
			change: policy(func(s *policySpec) {
				s.MatchConditions = append(s.MatchConditions, admissionregistrationv1.MatchCondition{Name: "x", Expression: "false"})
			}),
			says: "in spec.matchConditions",
		},
		"a policy is for less": {
			change: policy(func(s *policySpec) { s.MatchConstraints.ResourceRules[0].Resources = []string{"configmaps"} }),
			says:   "in spec.matchConstraints",
		},
		"a policy leaves namespaces out": {
			change: policy(func(s *policySpec) {
				s.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			}),
			says: "in spec.matchConstraints",
		},
		"a policy means something else": {
			change: policy(func(s *policySpec) { s.Variables[0].Expression, s.Validations[0].Expression = "1 == 1", "true" }),
			says:   "in spec.variables, spec.validations",
		},
		"a policy lets pass what it cannot judge": {
			change: policy(func(s *policySpec) { ignore := admissionregistrationv1.Ignore; s.FailurePolicy = &ignore }),
			says:   "in spec.failurePolicy",
		},
		"a policy has parameters": {
			change: policy(func(s *policySpec) { s.ParamKind = &admissionregistrationv1.ParamKind{Kind: "ConfigMap"} }),
			says:   "in spec.paramKind",
		},
		"a binding is missing": {
			change: func(s set) { delete(s.bindings, "b") }, says: "ValidatingAdmissionPolicyBinding b is missing",
		},
		"a binding binds something else": {
			change: binding(func(s *bindingSpec) { s.PolicyName = "q" }), says: "binds policy q, not p",
		},
		"a binding only warns": {
			change: binding(func(s *bindingSpec) {
				s.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
			}),
			says: "does not deny",
		},
		"a binding has parameters": {
			change: binding(func(s *bindingSpec) { s.ParamRef = &admissionregistrationv1.ParamRef{Name: "x"} }), says: "paramRef",
		},
		"a binding leaves namespaces out": {
			change: binding(func(s *bindingSpec) {
				s.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}},
				}}
			}),
			says: "is narrowed by matchResources",
		},
		"a binding leaves resources out": {
			change: binding(func(s *bindingSpec) {
				s.MatchResources = &admissionregistrationv1.MatchResources{
					ExcludeResourceRules: make([]admissionregistrationv1.NamedRuleWithOperations, 1),
				}
			}),
			says: "is narrowed by matchResources",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			have := parsed(t)
			tc.change(have)
			found := problems(parsed(t), have)
			if tc.says == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Contains(t, found[0], tc.says)
		})
	}
	assert.Len(t, problems(parsed(t), newSet()), 2, "all that is missing is told")
}

func TestWhatIsNoPolicyIsNotParsed(t *testing.T) {
	for sentence, file := range map[string]string{
		"another kind":  "kind: ConfigMap\n",
		"no kind":       "a: b\n",
		"unknown field": "kind: ValidatingAdmissionPolicy\nspek: {}\n",
		"no YAML":       "{",
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := parse([][]byte{[]byte(file)})
			require.ErrorContains(t, err, "decoding a policy")
		})
	}
	s, err := parse([][]byte{[]byte("# nothing\n---\n---\n" + shipped)})
	require.NoError(t, err)
	assert.Len(t, s.policies, 1)
}

func TestServiceAccount(t *testing.T) {
	for user, want := range map[string][]string{
		"system:serviceaccount:ns:name": {"ns", "name"}, "system:admin": nil, "system:serviceaccount:ns": nil,
		"system:serviceaccount::name": nil, "system:serviceaccount:ns:": nil, "": nil,
	} {
		namespace, name, ok := serviceAccount(user)
		assert.Equal(t, want != nil, ok, user)
		if ok {
			assert.Equal(t, want, []string{namespace, name})
		}
	}
}
