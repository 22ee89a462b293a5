package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// userPrefix is the prefix of the user names of ServiceAccounts.
const userPrefix = "system:serviceaccount:"

// serviceAccount returns namespace and name of a user that is a ServiceAccount; false for any other user.
func serviceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, userPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != ""
}

// problems lists the wanted policies and bindings that are not in force, one sentence each, ordered by name.
func problems(want, have set) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(want.policies)) {
		if problem := policyProblem(want.policies[name], have.policies[name]); problem != "" {
			all = append(all, fmt.Sprintf("ValidatingAdmissionPolicy %s %s", name, problem))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want.bindings)) {
		if problem := bindingProblem(want.bindings[name], have.bindings[name]); problem != "" {
			all = append(all, fmt.Sprintf("ValidatingAdmissionPolicyBinding %s %s", name, problem))
		}
	}
	return all
}

// policyProblem returns what is wrong with a policy; empty when nothing is.
func policyProblem(want, have *admissionregistrationv1.ValidatingAdmissionPolicy) string {
	if have == nil {
		return "is missing"
	}
	wanted, found := accounts(&want.Spec), accounts(&have.Spec)
	if !slices.Equal(wanted, found) {
		return fmt.Sprintf("was written for %s; the hub manager needs it for %s", list(found), list(wanted))
	}
	if different := differences(defaulted(&want.Spec), defaulted(&have.Spec)); len(different) > 0 {
		return "differs from the one that this version ships, in " + strings.Join(different, ", ")
	}
	return ""
}

// bindingProblem returns what is wrong with a binding; empty when nothing is.
func bindingProblem(want, have *admissionregistrationv1.ValidatingAdmissionPolicyBinding) string {
	if have == nil {
		return "is missing"
	}
	spec := &have.Spec
	switch {
	case spec.PolicyName != want.Spec.PolicyName:
		return fmt.Sprintf("binds policy %s, not %s", spec.PolicyName, want.Spec.PolicyName)
	case !slices.Contains(spec.ValidationActions, admissionregistrationv1.Deny):
		return "does not deny: its validationActions lack Deny"
	case spec.ParamRef != nil:
		return "has a paramRef, which the policy does not know; delete the binding before you apply it again"
	case narrow(spec.MatchResources):
		return "is narrowed by matchResources; delete the binding before you apply it again"
	}
	return ""
}

// narrow reports whether a binding excludes requests that its policy matches.
func narrow(m *admissionregistrationv1.MatchResources) bool {
	if m == nil {
		return false
	}
	return len(m.ResourceRules) > 0 || len(m.ExcludeResourceRules) > 0 || selects(m.NamespaceSelector) ||
		selects(m.ObjectSelector)
}

func selects(s *metav1.LabelSelector) bool {
	return s != nil && (len(s.MatchLabels) > 0 || len(s.MatchExpressions) > 0)
}

// differences lists the fields in which two policies differ in effect.
func differences(want, have *admissionregistrationv1.ValidatingAdmissionPolicySpec) []string {
	var all []string
	for _, field := range []struct {
		name       string
		want, have any
	}{
		{"paramKind", want.ParamKind, have.ParamKind},
		{"matchConstraints", want.MatchConstraints, have.MatchConstraints},
		{"failurePolicy", want.FailurePolicy, have.FailurePolicy},
		{"matchConditions", want.MatchConditions, have.MatchConditions},
		{"variables", want.Variables, have.Variables},
		{"validations", expressions(want.Validations), expressions(have.Validations)},
	} {
		if !equality.Semantic.DeepEqual(field.want, field.have) {
			all = append(all, "spec."+field.name)
		}
	}
	return all
}

func expressions(validations []admissionregistrationv1.Validation) []string {
	all := make([]string, 0, len(validations))
	for i := range validations {
		all = append(all, validations[i].Expression)
	}
	return all
}

// defaulted returns a copy with API defaults.
func defaulted(
	spec *admissionregistrationv1.ValidatingAdmissionPolicySpec,
) *admissionregistrationv1.ValidatingAdmissionPolicySpec {
	filled := spec.DeepCopy()
	setDefault(&filled.FailurePolicy, admissionregistrationv1.Fail)
	setDefault(&filled.MatchConstraints, admissionregistrationv1.MatchResources{})
	match := filled.MatchConstraints
	setDefault(&match.MatchPolicy, admissionregistrationv1.Equivalent)
	setDefault(&match.NamespaceSelector, metav1.LabelSelector{})
	setDefault(&match.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]admissionregistrationv1.NamedRuleWithOperations{
		match.ResourceRules, match.ExcludeResourceRules,
	} {
		for i := range rules {
			setDefault(&rules[i].Scope, admissionregistrationv1.AllScopes)
		}
	}
	return filled
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// accounts returns the ServiceAccounts in the expressions of a policy, ordered, without duplicates.
func accounts(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) []string {
	name := regexp.MustCompile(userPrefix + `[a-z0-9-]+:[a-z0-9.-]+`)
	var all []string
	find := func(expression string) { all = append(all, name.FindAllString(expression, -1)...) }
	for i := range spec.MatchConditions {
		find(spec.MatchConditions[i].Expression)
	}
	for i := range spec.Variables {
		find(spec.Variables[i].Expression)
	}
	for i := range spec.Validations {
		find(spec.Validations[i].Expression)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func list(all []string) string {
	if len(all) == 0 {
		return "no ServiceAccount"
	}
	return strings.Join(all, ", ")
}
