package feedback

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
)

// configMap is an object without status.
const configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}`

// jobObject returns a Job with a condition.
func jobObject(kind, status string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, status: {active: 1, conditions: `+
		`[{type: Suspended, status: "True"}, {type: %s, status: "%s"}]}}`, kind, status)
}

// wellKnownComplete returns the well-known rule Complete.
func wellKnownComplete() workv1.ConditionRule {
	return workv1.ConditionRule{Type: workv1.WellKnownConditionsType, Condition: "Complete"}
}

// celRule returns a rule of CEL expressions.
func celRule(condition string, expressions ...string) workv1.ConditionRule {
	return workv1.ConditionRule{
		Type: workv1.CelConditionExpressionsType, Condition: condition, CelExpressions: expressions,
	}
}

// celRules returns a rule for each expression.
func celRules(expressions ...string) []workv1.ConditionRule {
	rules := make([]workv1.ConditionRule, len(expressions))
	for i, expression := range expressions {
		rules[i] = celRule("Good", expression)
	}
	return rules
}

// withMessage sets the message and the message expression of a rule.
func withMessage(rule workv1.ConditionRule, message, expression string) workv1.ConditionRule {
	rule.Message, rule.MessageExpression = message, expression
	return rule
}

// Shows: work/rules-on-objects
func TestRulesOnObjects(t *testing.T) {
	pod := func(phase string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: p}, status: {phase: %s}}`, phase)
	}
	const thing = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {num: "3"}, status: {conditions: [{type: X}]},` +
		` spec: {replicas: 2, half: 0.5, list: [a, b]}}`
	const evaluated, failed = "ConditionRuleEvaluated", "ConditionRuleExpressionError"
	for name, c := range map[string]struct {
		object                  string
		rule                    workv1.ConditionRule
		status, reason, message string
	}{
		"a Job that completed": {
			jobObject("Complete", "True"), wellKnownComplete(), "True", evaluated, "Job is finished",
		},
		"a Job that failed":     {jobObject("Failed", "True"), wellKnownComplete(), "True", evaluated, "Job is finished"},
		"a Job that may not":    {jobObject("Failed", "False"), wellKnownComplete(), "False", evaluated, "Job is not finished"},
		"a Job that just began": {"{apiVersion: batch/v1, kind: Job}", wellKnownComplete(), "False", evaluated, "Job is not finished"},
		"a Job with a message of its own": {
			jobObject("Complete", "True"), withMessage(wellKnownComplete(), "mine", ""), "True", evaluated, "mine",
		},
		"a Job with a message expression": {
			jobObject("Complete", "True"), withMessage(wellKnownComplete(), "mine", "object.metadata.name + ' ' + string(result)"),
			"True", evaluated, "j true",
		},
		"a Pod that succeeded": {pod("Succeeded"), wellKnownComplete(), "True", evaluated, "Pod is in phase Succeeded"},
		"a Pod that failed":    {pod("Failed"), wellKnownComplete(), "True", evaluated, "Pod is in phase Failed"},
		"a Pod that runs":      {pod("Running"), wellKnownComplete(), "False", evaluated, "Pod is in phase Running"},
		"a Pod without phase":  {"{apiVersion: v1, kind: Pod}", wellKnownComplete(), "False", evaluated, "Pod is in no phase yet"},

		"an expression that holds":  {thing, celRule("Good", "object.spec.replicas == 2"), "True", evaluated, "Manifest is Good"},
		"one that does not":         {thing, celRule("Good", "object.spec.replicas > 2"), "False", evaluated, "Manifest is not Good"},
		"no expression at all":      {thing, celRule("Good"), "True", evaluated, "Manifest is Good"},
		"all of several must hold":  {thing, celRule("Good", "true", "false", "object.nothing"), "False", evaluated, "Manifest is not Good"},
		"numbers of several kinds":  {thing, celRule("Good", "object.spec.half < 1", "object.spec.replicas > 1.5"), "True", evaluated, "Manifest is Good"},
		"a bool by way of dyn":      {thing, celRule("Good", "dyn(true)"), "True", evaluated, "Manifest is Good"},
		"a map with conditions":     {thing, celRule("Good", "hasConditions(object.status)"), "True", evaluated, "Manifest is Good"},
		"a map without":             {thing, celRule("Good", "hasConditions(object.spec)"), "False", evaluated, "Manifest is not Good"},
		"no map":                    {thing, celRule("Good", "hasConditions('x')"), "False", evaluated, "Manifest is not Good"},
		"optional fields":           {thing, celRule("Good", "object.?a.?b.orValue(7) == 7"), "True", evaluated, "Manifest is Good"},
		"the library of strings":    {thing, celRule("Good", "'%s-%d'.format(['a', 1]).upperAscii() == 'A-1'", "'aXb'.replace('X', '') == 'ab'", "['a','b'].join('.') == 'a.b'", "['a','b'].join() == 'ab'", "'aXXb'.replace('X', '', 1) == 'aXb'"), "True", evaluated, "Manifest is Good"},
		"the library of lists":      {thing, celRule("Good", "[1, 2].sum() == 3", "object.spec.list.isSorted()"), "True", evaluated, "Manifest is Good"},
		"regular expressions":       {thing, celRule("Good", "'abc 12'.find('[0-9]+') == '12'"), "True", evaluated, "Manifest is Good"},
		"addresses":                 {thing, celRule("Good", "url('https://h/p').getHost() == 'h'", "isIP('10.0.0.1')", "cidr('10.0.0.0/8').containsIP('10.0.0.1')"), "True", evaluated, "Manifest is Good"},
		"quantities and versions":   {thing, celRule("Good", "quantity('1Gi').isGreaterThan(quantity('1Mi'))", "semver('1.2.3').major() == 1"), "True", evaluated, "Manifest is Good"},
		"formats":                   {thing, celRule("Good", "!format.dns1123Label().validate('a-b').hasValue()"), "True", evaluated, "Manifest is Good"},
		"a message":                 {thing, withMessage(celRule("Good", "true"), "fine", ""), "True", evaluated, "fine"},
		"a message expression":      {thing, withMessage(celRule("Good", "false"), "fine", "result ? 'yes' : 'no, ' + object.data.num"), "False", evaluated, "no, 3"},
		"an empty expression":       {thing, withMessage(celRule("Good", "true"), "fine", "''"), "True", evaluated, "fine"},
		"an expression for nothing": {thing, withMessage(celRule("Good", "true"), "", "''"), "True", evaluated, "Manifest is Good"},

		"what is no expression":      {thing, celRule("Good", "object."), "False", failed, "Syntax error"},
		"what fails":                 {thing, celRule("Good", "object.nothing == 1"), "False", failed, "no such key: nothing"},
		"what gives no bool":         {thing, celRule("Good", "object.data.num"), "False", failed, "gives a value of type string, not a bool"},
		"a message of another type":  {thing, withMessage(celRule("Good", "true"), "fine", "3"), "True", evaluated, "the message expression failed"},
		"a message that is none":     {thing, withMessage(celRule("Good", "true"), "fine", "object."), "True", evaluated, "Syntax error"},
		"the answer is no variable":  {thing, celRule("Good", "result"), "False", failed, "undeclared reference to 'result'"},
		"an expression of no end":    {thing, celRule("Good", costly(9)), "False", failed, "CEL evaluation budget exceeded"},
		"a type that nobody knows":   {thing, workv1.ConditionRule{Type: "X", Condition: "Good"}, "Unknown", "ConditionRuleInvalid", `the unknown type "X"`},
		"what is known of no object": {thing, wellKnownComplete(), "Unknown", "ConditionRuleInvalid", "has no well-known condition"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, _ := New(false, 0).Conditions(t.Context(), object(t, c.object), []workv1.ConditionRule{c.rule})
				require.Len(t, got, 1)
				assert.Equal(t, c.rule.Condition, got[0].Condition)
				assert.Equal(t, c.status, string(got[0].Status), got[0].Message)
				assert.Equal(t, c.reason, got[0].Reason)
				if c.reason == evaluated && !strings.Contains(name, "message ") {
					assert.Equal(t, c.message, got[0].Message)
				} else {
					assert.Contains(t, got[0].Message, c.message)
				}
			})
		})
	}
}

// costly returns nested loops of ten iterations each.
func costly(depth int) string {
	if depth == 0 {
		return "true"
	}
	return fmt.Sprintf("[0,1,2,3,4,5,6,7,8,9].all(x%d, %s)", depth, costly(depth-1))
}

// brokenCEL fails with an internal error.
type brokenCEL struct{ calls int }

func (b *brokenCEL) condition(context.Context, string, map[string]any, *int64) (bool, error) {
	b.calls++
	return false, internalError{errors.New("out of order")}
}

func (b *brokenCEL) message(context.Context, string, map[string]any, *int64) (string, error) {
	b.calls++
	return "", internalError{errors.New("out of order")}
}

func TestWhatIsNotTheExpressionsFault(t *testing.T) {
	got, _ := (&Evaluator{cel: &brokenCEL{}}).Conditions(t.Context(), object(t, configMap), []workv1.ConditionRule{celRule("Good", "true")})
	assert.Equal(t, []RuleResult{{"Good", metav1.ConditionUnknown, "ConditionRuleInternalError", "out of order", true}}, got)
}

func TestOneBadRuleDoesNotSpoilTheOthers(t *testing.T) {
	rules := []workv1.ConditionRule{celRule("A", "nonsense("), celRule("B", "true"), {Type: "X", Condition: "C"}, celRule("D", "false")}
	got, _ := New(false, 0).Conditions(t.Context(), object(t, configMap), rules)
	var statuses []string
	for _, r := range got {
		statuses = append(statuses, r.Condition+"="+string(r.Status))
	}
	assert.Equal(t, []string{"A=False", "B=True", "C=Unknown", "D=False"}, statuses)
}

// Shows: work/status-fits, work/rules-reserved
func TestUsableRules(t *testing.T) {
	job := schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	for name, c := range map[string]struct {
		gvk     schema.GroupVersionKind
		rule    workv1.ConditionRule
		refused string
	}{
		"a condition of its own":         {job, celRule("Healthy"), ""},
		"one with a domain":              {job, celRule("example.com/Healthy"), ""},
		"one of a name of 200 letters":   {job, celRule(strings.Repeat("x", 200)), ""},
		"one of the greatest length":     {job, celRule(strings.Repeat("x", 316)), ""},
		"one that is too long":           {job, celRule(strings.Repeat("x", 317)), "no type that the API takes"},
		"one with blanks":                {job, celRule("not a type"), "no type that the API takes"},
		"none":                           {job, celRule(""), "no type that the API takes"},
		"two slashes":                    {job, celRule("a/b/c"), "no type that the API takes"},
		"a letter that is not ASCII":     {job, celRule("Grün"), "no type that the API takes"},
		"one that is reserved":           {job, celRule("Applied"), "set by the agent itself"},
		"another one that is reserved":   {job, celRule("own.io/Rules"), "set by the agent itself"},
		"one that is not reserved":       {job, celRule("Available"), ""},
		"Complete of a Job":              {job, wellKnownComplete(), ""},
		"Complete of a Pod":              {schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, wellKnownComplete(), ""},
		"Complete of anything else":      {schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, wellKnownComplete(), "ConfigMap has no well-known condition"},
		"Complete of an old Job":         {schema.GroupVersionKind{Group: "batch", Version: "v1beta1", Kind: "Job"}, wellKnownComplete(), "no well-known"},
		"another well-known one of Jobs": {job, workv1.ConditionRule{Type: workv1.WellKnownConditionsType, Condition: "Ready"}, "no well-known"},
		"a type that nobody knows":       {job, workv1.ConditionRule{Type: "X", Condition: "Good"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			usable, refused := UsableRules(c.gvk, []workv1.ConditionRule{celRule("First"), c.rule}, "Applied", "own.io/Rules")
			if c.refused == "" {
				assert.Equal(t, []workv1.ConditionRule{celRule("First"), c.rule}, usable)
				assert.Empty(t, refused)
				return
			}
			assert.Equal(t, []workv1.ConditionRule{celRule("First")}, usable, "the others are used")
			require.Len(t, refused, 1)
			assert.Contains(t, refused[0], c.refused)
			assert.Less(t, len(refused[0]), 500)
		})
	}
}
