package rights_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/cel/library"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/manifests"
)

// whatAnnotation says in one line what a policy is for.
const whatAnnotation = "policies.spokelet.io/what"

// policy is a ValidatingAdmissionPolicy that we ship.
type policy struct {
	name, what string
	rules      []admissionregistrationv1.NamedRuleWithOperations
	conditions []admissionregistrationv1.MatchCondition
}

// shippedPolicies returns all policies, ordered by name.
func shippedPolicies(t *testing.T) []policy {
	t.Helper()
	var all []policy
	for _, file := range manifests.Policies() {
		for doc := range bytes.SplitSeq(file, []byte("\n---\n")) {
			var found admissionregistrationv1.ValidatingAdmissionPolicy
			require.NoError(t, yaml.Unmarshal(doc, &found))
			if found.Kind != "ValidatingAdmissionPolicy" {
				continue
			}
			p := policy{
				name: found.Name, what: found.Annotations[whatAnnotation], conditions: found.Spec.MatchConditions,
				rules: found.Spec.MatchConstraints.ResourceRules,
			}
			require.NotEmpty(t, p.what, "%s has no annotation %s", p.name, whatAnnotation)
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b policy) int { return strings.Compare(a.name, b.name) })
	return all
}

// concerns reports whether the policy can refuse anything that a user has a right to: it writes what the policy is
// about, and no condition of the policy leaves the user out.
func (p policy) concerns(t *testing.T, r *rights) bool {
	t.Helper()
	writes := false
	for one := range r.where {
		writes = writes || p.matches(one)
	}
	if !writes {
		return false
	}
	for _, condition := range p.conditions {
		if leavesOut(t, condition.Expression, r) {
			return false
		}
	}
	return true
}

// matches reports whether a right is one to write what the policy is about.
func (p policy) matches(one right) bool {
	if slices.Contains([]string{"get", "list", "watch"}, one.verb) {
		return false
	}
	group, resource := "", one.resource
	if first, rest, ok := strings.Cut(one.resource, "/"); ok && strings.Contains(first, ".") {
		group, resource = first, rest
	}
	for _, rule := range p.rules {
		inGroup := slices.Contains(rule.APIGroups, group) || slices.Contains(rule.APIGroups, "*")
		if inGroup && (slices.Contains(rule.Resources, resource) || slices.Contains(rule.Resources, "*/*") ||
			(slices.Contains(rule.Resources, "*") && !strings.Contains(resource, "/"))) {
			return true
		}
	}
	return false
}

// leavesOut reports whether an expression is false for a user whatever the request is. One that looks at the request
// cannot be judged here, and leaves nobody out.
func leavesOut(t *testing.T, expression string, r *rights) bool {
	t.Helper()
	variables := []cel.EnvOption{cel.OptionalTypes(), ext.Strings(), library.Authz()}
	for _, name := range []string{"request", "object", "oldObject", "namespaceObject", "authorizer", "variables"} {
		variables = append(variables, cel.Variable(name, cel.DynType))
	}
	env, err := cel.NewEnv(variables...)
	require.NoError(t, err)
	compiled, issues := env.Compile(expression)
	require.NoError(t, issues.Err(), "the condition uses what this test does not declare")
	program, err := env.Program(compiled)
	require.NoError(t, err)
	user := map[string]any{"username": r.user, "groups": append([]string{"system:authenticated"}, r.groups...)}
	value, _, err := program.Eval(map[string]any{"request": map[string]any{"userInfo": user}})
	return err == nil && value.Value() == false
}
