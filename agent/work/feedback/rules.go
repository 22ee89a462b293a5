package feedback

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/message"
)

const (
	// maxConditionType and conditionTypePattern are what the CRD of ManifestWorks says of the type of a condition.
	maxConditionType     = 316
	conditionTypePattern = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?` +
		`(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`

	// maxExpressionCost is the limit of the cost of one expression, in units of CEL (work contract, section 1.7).
	maxExpressionCost = 1_000_000
	// MaxManifestCost is the limit of the cost of all expressions of a manifest together, in units of CEL.
	MaxManifestCost = 10_000_000
)

// errBudget says that an expression, or all of a manifest together, are too expensive.
var errBudget = errors.New("CEL evaluation budget exceeded")

// RuleResult is the result of one condition rule on an object: the condition that it sets.
type RuleResult struct {
	Condition string
	Status    metav1.ConditionStatus
	Reason    string
	Message   string
}

// celSource evaluates CEL expressions on an object and takes what that cost from the budget.
type celSource interface {
	// test evaluates an expression of a rule. An error is an internalError or one of the expression.
	test(ctx context.Context, expression string, object map[string]any, budget *int64) (bool, error)
	// word evaluates a message expression.
	word(ctx context.Context, expression string, object map[string]any, result bool, budget *int64) (string, error)
}

// internalError says that it is not the expression's fault.
type internalError struct{ cause error }

// Error is the cause.
func (e internalError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e internalError) Unwrap() error { return e.cause }

// UsableRules divides the condition rules of a manifest into those that can be evaluated and the reasons for which the
// others are refused, one for each. A rule is refused when its condition would replace one that the agent itself sets,
// which are reserved, when the API would refuse its condition and with it the whole status, and when it asks for a
// well-known condition that the kind does not have.
func UsableRules(gvk schema.GroupVersionKind, rules []workv1.ConditionRule, reserved ...string,
) ([]workv1.ConditionRule, []string) {
	var usable []workv1.ConditionRule
	var refused []string
	for _, rule := range rules {
		if why := refusal(gvk, rule, reserved); why != "" {
			refused = append(refused, why)
			continue
		}
		usable = append(usable, rule)
	}
	return usable, refused
}

// refusal says why a rule cannot be evaluated on a kind; empty when it can.
func refusal(gvk schema.GroupVersionKind, rule workv1.ConditionRule, reserved []string) string {
	if slices.Contains(reserved, rule.Condition) {
		return fmt.Sprintf("the condition %q is set by the agent itself, so no rule can set it", rule.Condition)
	}
	if !conditionType(rule.Condition) {
		return fmt.Sprintf("the condition %q is no type that the API takes: use letters, digits, '-', '_' and '.'",
			message.Cut(rule.Condition, maxConditionType))
	}
	if rule.Type == workv1.WellKnownConditionsType {
		if _, known := wellKnownRule(gvk, rule.Condition); !known {
			return fmt.Sprintf("%s has no well-known condition %q; only Complete of a Job or a Pod is known",
				gvk.Kind, rule.Condition)
		}
	}
	return ""
}

// conditionType reports whether the API takes a condition of this type.
func conditionType(name string) bool {
	fits, err := regexp.MatchString(conditionTypePattern, name)
	return err == nil && fits && utf8.RuneCountInString(name) <= maxConditionType
}

// finding is what a well-known condition says of an object.
type finding struct {
	holds   bool
	message string
}

// wellKnownRule returns the well-known condition of a kind (work contract, section 1.7).
func wellKnownRule(gvk schema.GroupVersionKind, condition string) (func(map[string]any) finding, bool) {
	if condition != workv1.ManifestComplete {
		return nil, false
	}
	switch gvk {
	case schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}:
		return jobComplete, true
	case schema.GroupVersionKind{Version: "v1", Kind: "Pod"}:
		return podComplete, true
	}
	return nil, false
}

// jobComplete reports whether a Job came to its end, well or badly.
func jobComplete(job map[string]any) finding {
	conditions, _, _ := unstructured.NestedSlice(job, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		kind, status := condition["type"], condition["status"]
		if (kind == "Complete" || kind == "Failed") && status == string(metav1.ConditionTrue) {
			return finding{true, "Job is finished"}
		}
	}
	return finding{false, "Job is not finished"}
}

// podComplete reports whether a Pod came to its end, well or badly.
func podComplete(pod map[string]any) finding {
	phase, _, _ := unstructured.NestedString(pod, "status", "phase")
	if phase == "" {
		return finding{false, "Pod is in no phase yet"}
	}
	return finding{phase == "Succeeded" || phase == "Failed", "Pod is in phase " + phase}
}

// Conditions evaluates the condition rules of a manifest on its object, and returns their results and their cost. The
// cost of all of them is bounded by MaxManifestCost. A rule that fails does not affect the others.
func (e *Evaluator) Conditions(ctx context.Context, object *unstructured.Unstructured, rules []workv1.ConditionRule,
) ([]RuleResult, int64) {
	budget := int64(MaxManifestCost)
	results := make([]RuleResult, 0, len(rules))
	for _, rule := range rules {
		results = append(results, ruleOn(ctx, e.cel, object, rule, &budget))
	}
	return results, MaxManifestCost - budget
}

// ruleOn evaluates one rule.
func ruleOn(ctx context.Context, cel celSource, object *unstructured.Unstructured, rule workv1.ConditionRule,
	budget *int64,
) RuleResult {
	var found finding
	switch rule.Type {
	case workv1.WellKnownConditionsType:
		look, known := wellKnownRule(object.GroupVersionKind(), rule.Condition)
		if !known {
			return invalidRule(rule, fmt.Sprintf("%s has no well-known condition", object.GroupVersionKind()))
		}
		found = look(object.Object)
	case workv1.CelConditionExpressionsType:
		holds, err := testAll(ctx, cel, object.Object, rule.CelExpressions, budget)
		if err != nil {
			return failedRule(rule, err)
		}
		found = finding{holds, "Manifest is not " + rule.Condition}
		if holds {
			found.message = "Manifest is " + rule.Condition
		}
	default:
		return invalidRule(rule, fmt.Sprintf("the condition rule has the unknown type %q", rule.Type))
	}
	if rule.Message != "" {
		found.message = rule.Message
	}
	if rule.MessageExpression != "" {
		worded, err := cel.word(ctx, rule.MessageExpression, object.Object, found.holds, budget)
		switch {
		case err != nil:
			// The answer stands, only its wording failed.
			found.message = "the message expression failed: " + err.Error()
		case worded != "":
			found.message = worded
		}
	}
	status := metav1.ConditionFalse
	if found.holds {
		status = metav1.ConditionTrue
	}
	return RuleResult{rule.Condition, status, workv1.ConditionRuleEvaluated, found.message}
}

// testAll reports whether all expressions are true; it stops at the first that is not.
func testAll(ctx context.Context, cel celSource, object map[string]any, expressions []string, budget *int64,
) (bool, error) {
	for _, expression := range expressions {
		holds, err := cel.test(ctx, expression, object, budget)
		if err != nil || !holds {
			return false, err
		}
	}
	return true, nil
}

// invalidRule is the result of a rule that cannot be evaluated at all.
func invalidRule(rule workv1.ConditionRule, why string) RuleResult {
	return RuleResult{rule.Condition, metav1.ConditionUnknown, workv1.ConditionRuleInvalid, why}
}

// failedRule is the result of a rule whose evaluation failed.
func failedRule(rule workv1.ConditionRule, err error) RuleResult {
	var internal internalError
	if errors.As(err, &internal) {
		return RuleResult{rule.Condition, metav1.ConditionUnknown, workv1.ConditionRuleInternalError, err.Error()}
	}
	return RuleResult{rule.Condition, metav1.ConditionFalse, workv1.ConditionRuleExpressionError, err.Error()}
}
