package feedback

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/message"
)

const (
	// maxConditionType and conditionTypePattern are those of the CRD of ManifestWorks for the type of a condition.
	maxConditionType     = 316
	conditionTypePattern = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?` +
		`(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`

	// maxExpressionCost is the limit of the cost of one expression, in units of CEL (docs/reference/work.md, "Condition
	// rules").
	maxExpressionCost = 1_000_000
	// MaxManifestCost is the limit of the cost of all expressions of a manifest together, in units of CEL.
	MaxManifestCost = 10_000_000
)

// maxExpressionTime is how long one expression may run. Its cost is an estimate, and a processor may be slow.
const maxExpressionTime = time.Second

// errTime means that an expression ran for longer than that.
var errTime = fmt.Errorf("the expression runs longer than %s", maxExpressionTime)

// errBudget means that an expression, or all expressions of a manifest together, cost too much.
var errBudget = errors.New("CEL evaluation budget exceeded")

// RuleResult is the result of one condition rule on an object: the condition that it sets.
type RuleResult struct {
	Condition string
	Status    metav1.ConditionStatus
	Reason    string
	Message   string
	// Late reports that the rule was not evaluated to its end for a cause that is not its own, such as a node that stalled
	// for a second. It may have another result the next time.
	Late bool
}

// celEvaluator evaluates CEL expressions on an object and subtracts their cost from the budget.
type celEvaluator interface {
	// condition evaluates an expression of a rule. An error is an internalError or is about the expression.
	condition(ctx context.Context, expression string, object map[string]any, budget *int64) (bool, error)
	// message evaluates a message expression, which has the variable result besides object.
	message(ctx context.Context, expression string, variables map[string]any, budget *int64) (string, error)
}

// internalError is an error that the expression does not cause.
type internalError struct{ cause error }

// Error is the cause.
func (e internalError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e internalError) Unwrap() error { return e.cause }

// UsableRules divides the condition rules of a manifest into those that can be evaluated and the reasons why the others
// are refused, one for each. A rule is refused if its condition is reserved, because the agent itself sets it; if the
// API would refuse the condition and with it the whole status; and if the kind does not have the well-known condition.
func UsableRules(gvk schema.GroupVersionKind, rules []workv1.ConditionRule, reserved ...string,
) ([]workv1.ConditionRule, []string) {
	var usable []workv1.ConditionRule
	var refused []string
	for _, rule := range rules {
		if reason := refusal(gvk, rule, reserved); reason != "" {
			refused = append(refused, reason)
			continue
		}
		usable = append(usable, rule)
	}
	return usable, refused
}

// refusal returns the reason why a rule cannot be evaluated on a kind; empty when it can.
func refusal(gvk schema.GroupVersionKind, rule workv1.ConditionRule, reserved []string) string {
	if slices.Contains(reserved, rule.Condition) {
		return fmt.Sprintf("the condition %q is set by the agent itself, so no rule can set it", rule.Condition)
	}
	if !validConditionType(rule.Condition) {
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

// validConditionType reports whether the API takes a condition of this type.
func validConditionType(name string) bool {
	matches, err := regexp.MatchString(conditionTypePattern, name)
	return err == nil && matches && utf8.RuneCountInString(name) <= maxConditionType
}

// finding is whether an object meets a condition, with the message of the condition.
type finding struct {
	met     bool
	message string
}

// wellKnownRule returns the well-known condition of a kind (docs/reference/work.md, "Condition rules").
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

// jobComplete reports whether a Job finished, successfully or not.
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

// podComplete reports whether a Pod finished, successfully or not.
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
		results = append(results, e.evaluateRule(ctx, object, rule, &budget))
	}
	return results, MaxManifestCost - budget
}

// evaluateRule evaluates one rule.
func (e *Evaluator) evaluateRule(ctx context.Context, object *unstructured.Unstructured, rule workv1.ConditionRule,
	budget *int64,
) RuleResult {
	var found finding
	var late bool
	switch rule.Type {
	case workv1.WellKnownConditionsType:
		evaluate, known := wellKnownRule(object.GroupVersionKind(), rule.Condition)
		if !known {
			return invalidRule(rule, fmt.Sprintf("%s has no well-known condition", object.GroupVersionKind()))
		}
		found = evaluate(object.Object)
	case workv1.CelConditionExpressionsType:
		met, err := e.allTrue(ctx, object.Object, rule.CelExpressions, budget)
		if err != nil {
			return failedRule(rule, err)
		}
		found = finding{met, "Manifest is not " + rule.Condition}
		if met {
			found.message = "Manifest is " + rule.Condition
		}
	default:
		return invalidRule(rule, fmt.Sprintf("the condition rule has the unknown type %q", rule.Type))
	}
	if rule.Message != "" {
		found.message = rule.Message
	}
	if rule.MessageExpression != "" {
		variables := map[string]any{"object": object.Object, "result": found.met}
		text, err := e.cel.message(ctx, rule.MessageExpression, variables, budget)
		switch {
		case err != nil:
			// The status of the condition does not depend on its message.
			found.message, late = "the message expression failed: "+err.Error(), isLate(err)
		case text != "":
			found.message = text
		}
	}
	status := metav1.ConditionFalse
	if found.met {
		status = metav1.ConditionTrue
	}
	return RuleResult{rule.Condition, status, workv1.ConditionRuleEvaluated, found.message, late}
}

// allTrue reports whether all expressions are true. It stops at the first that is not.
func (e *Evaluator) allTrue(ctx context.Context, object map[string]any, expressions []string, budget *int64,
) (bool, error) {
	for _, expression := range expressions {
		met, err := e.cel.condition(ctx, expression, object, budget)
		if err != nil || !met {
			return false, err
		}
	}
	return true, nil
}

// invalidRule is the result of a rule that cannot be evaluated at all.
func invalidRule(rule workv1.ConditionRule, message string) RuleResult {
	return RuleResult{rule.Condition, metav1.ConditionUnknown, workv1.ConditionRuleInvalid, message, false}
}

// failedRule is the result of a rule whose evaluation failed.
func failedRule(rule workv1.ConditionRule, err error) RuleResult {
	status, reason := metav1.ConditionFalse, workv1.ConditionRuleExpressionError
	if isInternal(err) {
		status, reason = metav1.ConditionUnknown, workv1.ConditionRuleInternalError
	}
	return RuleResult{rule.Condition, status, reason, err.Error(), isLate(err)}
}

// isInternal reports whether the expression does not cause an error.
func isInternal(err error) bool {
	var internal internalError
	return errors.As(err, &internal)
}

// isLate reports whether an expression may have another result the next time, on the same object.
func isLate(err error) bool { return errors.Is(err, errTime) || isInternal(err) }
