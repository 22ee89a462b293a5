package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// jobObject is a Job whose one condition has a type and a status.
func jobObject(kind, status string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, status: {active: 1, conditions: `+
		`[{type: Suspended, status: "True"}, {type: %s, status: "%s"}]}}`, kind, status)
}

// wellKnownComplete is the rule of a manifest that ends.
func wellKnownComplete() workv1.ConditionRule {
	return workv1.ConditionRule{Type: workv1.WellKnownConditionsType, Condition: "Complete"}
}

// celRule is a rule of expressions.
func celRule(condition string, expressions ...string) workv1.ConditionRule {
	return workv1.ConditionRule{
		Type: workv1.CelConditionExpressionsType, Condition: condition, CelExpressions: expressions,
	}
}

// worded gives a rule a message and a message expression.
func worded(rule workv1.ConditionRule, message, expression string) workv1.ConditionRule {
	rule.Message, rule.MessageExpression = message, expression
	return rule
}

// Row: work 6.1 CD TestConditionReader
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
			jobObject("Complete", "True"), worded(wellKnownComplete(), "mine", ""), "True", evaluated, "mine",
		},
		"a Job with a message expression": {
			jobObject("Complete", "True"), worded(wellKnownComplete(), "mine", "object.metadata.name + ' ' + string(result)"),
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
		"a message":                 {thing, worded(celRule("Good", "true"), "fine", ""), "True", evaluated, "fine"},
		"a message expression":      {thing, worded(celRule("Good", "false"), "fine", "result ? 'yes' : 'no, ' + object.data.num"), "False", evaluated, "no, 3"},
		"an empty expression":       {thing, worded(celRule("Good", "true"), "fine", "''"), "True", evaluated, "fine"},
		"an expression for nothing": {thing, worded(celRule("Good", "true"), "", "''"), "True", evaluated, "Manifest is Good"},

		"what is no expression":      {thing, celRule("Good", "object."), "False", failed, "Syntax error"},
		"what fails":                 {thing, celRule("Good", "object.nothing == 1"), "False", failed, "no such key: nothing"},
		"what gives no bool":         {thing, celRule("Good", "object.data.num"), "False", failed, "gives a value of type string, not a bool"},
		"a message of another type":  {thing, worded(celRule("Good", "true"), "fine", "3"), "True", evaluated, "the message expression failed"},
		"a message that is none":     {thing, worded(celRule("Good", "true"), "fine", "object."), "True", evaluated, "Syntax error"},
		"the answer is no variable":  {thing, celRule("Good", "result"), "False", failed, "undeclared reference to 'result'"},
		"an expression of no end":    {thing, celRule("Good", costly(9)), "False", failed, "CEL evaluation budget exceeded"},
		"a type that nobody knows":   {thing, workv1.ConditionRule{Type: "X", Condition: "Good"}, "Unknown", "ConditionRuleInvalid", `the unknown type "X"`},
		"what is known of no object": {thing, wellKnownComplete(), "Unknown", "ConditionRuleInvalid", "has no well-known condition"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := ruleAll(t.Context(), newCEL(), object(t, c.object), []workv1.ConditionRule{c.rule})
			require.Len(t, got, 1)
			assert.Equal(t, c.rule.Condition, got[0].condition)
			assert.Equal(t, c.status, string(got[0].status), got[0].message)
			assert.Equal(t, c.reason, got[0].reason)
			if c.reason == evaluated && !strings.Contains(name, "message ") {
				assert.Equal(t, c.message, got[0].message)
			} else {
				assert.Contains(t, got[0].message, c.message)
			}
		})
	}
}

// costly is an expression of loops within loops of ten turns each.
func costly(depth int) string {
	if depth == 0 {
		return "true"
	}
	return fmt.Sprintf("[0,1,2,3,4,5,6,7,8,9].all(x%d, %s)", depth, costly(depth-1))
}

// brokenCEL fails for a reason of its own.
type brokenCEL struct{ calls int }

func (b *brokenCEL) test(context.Context, string, map[string]any, *int64) (bool, error) {
	b.calls++
	return false, internalError{errors.New("out of order")}
}

func (b *brokenCEL) word(context.Context, string, map[string]any, bool, *int64) (string, error) {
	b.calls++
	return "", internalError{errors.New("out of order")}
}

func TestWhatIsNotTheExpressionsFault(t *testing.T) {
	got, _ := ruleAll(t.Context(), &brokenCEL{}, object(t, configMap("a")), []workv1.ConditionRule{celRule("Good", "true")})
	assert.Equal(t, []ruling{{"Good", metav1.ConditionUnknown, "ConditionRuleInternalError", "out of order"}}, got)
}

func TestOneBadRuleDoesNotSpoilTheOthers(t *testing.T) {
	rules := []workv1.ConditionRule{celRule("A", "nonsense("), celRule("B", "true"), {Type: "X", Condition: "C"}, celRule("D", "false")}
	got, _ := ruleAll(t.Context(), newCEL(), object(t, configMap("a")), rules)
	var statuses []string
	for _, r := range got {
		statuses = append(statuses, r.condition+"="+string(r.status))
	}
	assert.Equal(t, []string{"A=False", "B=True", "C=Unknown", "D=False"}, statuses)
}

// Weakness: W27
// Weakness: W40
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
		"one that is too long":           {job, celRule(strings.Repeat("x", 317)), "no type that the API takes"},
		"one with blanks":                {job, celRule("not a type"), "no type that the API takes"},
		"none":                           {job, celRule(""), "no type that the API takes"},
		"two slashes":                    {job, celRule("a/b/c"), "no type that the API takes"},
		"a letter that is not ASCII":     {job, celRule("Grün"), "no type that the API takes"},
		"Applied is ours":                {job, celRule("Applied"), "set by the agent itself"},
		"Available is ours":              {job, celRule("Available"), "set by the agent itself"},
		"StatusFeedbackSynced is ours":   {job, celRule("StatusFeedbackSynced"), "set by the agent itself"},
		"Deleting is ours":               {job, celRule("Deleting"), "set by the agent itself"},
		"and the one that tells this":    {job, celRule(conditionRules), "set by the agent itself"},
		"Complete of a Job":              {job, wellKnownComplete(), ""},
		"Complete of a Pod":              {schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, wellKnownComplete(), ""},
		"Complete of anything else":      {schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, wellKnownComplete(), "ConfigMap has no well-known condition"},
		"Complete of an old Job":         {schema.GroupVersionKind{Group: "batch", Version: "v1beta1", Kind: "Job"}, wellKnownComplete(), "no well-known"},
		"another well-known one of Jobs": {job, workv1.ConditionRule{Type: workv1.WellKnownConditionsType, Condition: "Ready"}, "no well-known"},
		"a type that nobody knows":       {job, workv1.ConditionRule{Type: "X", Condition: "Good"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			usable, refused := usableRules(c.gvk, []workv1.ConditionRule{celRule("First"), c.rule})
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

// ruled is a manifest with rules.
func ruled(t *testing.T, rules ...workv1.ConditionRule) manifest {
	t.Helper()
	m := read(t, configMap("a"))[0]
	m.option.rules, m.refused = usableRules(m.gvk, rules)
	return m
}

// saying is a result with rulings.
func saying(rulings ...ruling) result {
	r := here()
	r.rulings = rulings
	return r
}

// says is the ruling of a rule that was evaluated.
func says(condition string, status metav1.ConditionStatus) ruling {
	return ruling{condition, status, workv1.ConditionRuleEvaluated, "m"}
}

// Row: work 6.1 SC TestConditionRules
// Row: work 6.2 conditionrules: missing well-known
func TestConditionsOfRules(t *testing.T) {
	m := ruled(t, celRule("Healthy", "true"), celRule("Available", "true"), celRule("not a type!", "true"))
	r := saying(says("Healthy", "True"))
	got := concludeManifest(2, &m, &r, nil, epoch)
	healthy := find(t, got.Conditions, "Healthy")
	assert.Equal(t, metav1.ConditionTrue, healthy.Status)
	assert.Equal(t, workv1.ConditionRuleEvaluated, healthy.Reason)
	assert.Equal(t, int64(2), healthy.ObservedGeneration)
	assert.Equal(t, "ResourceAvailable", find(t, got.Conditions, "Available").Reason, "ours are not overwritten")
	assert.Nil(t, meta.FindStatusCondition(got.Conditions, "not a type!"), "the API would refuse the whole status")
	told := find(t, got.Conditions, conditionRules)
	assert.Equal(t, metav1.ConditionFalse, told.Status)
	assert.Contains(t, told.Message, `"Available" is set by the agent itself`)
	assert.Contains(t, told.Message, `"not a type!" is no type`)

	later := epoch.Add(time.Hour)
	assert.Equal(t, got, concludeManifest(2, &m, &r, &got, later), "it is stable")
	next := concludeManifest(3, &m, &r, &got, later)
	assert.Equal(t, epoch, find(t, next.Conditions, "Healthy").LastTransitionTime.Time, "only a flip moves the time")
	assert.Equal(t, int64(3), find(t, next.Conditions, "Healthy").ObservedGeneration)
	r = saying(says("Healthy", "False"))
	assert.Equal(t, later, find(t, concludeManifest(3, &m, &r, &next, later).Conditions, "Healthy").LastTransitionTime.Time)

	unread := result{presence: presenceUnknown, err: errors.New("x"), readErr: errors.New("x")}
	kept := concludeManifest(3, &m, &unread, &got, later)
	assert.Equal(t, healthy, find(t, kept.Conditions, "Healthy"), "what could not be read stays as it was")
	absent := result{presence: presenceAbsent}
	gone := concludeManifest(3, &m, &absent, &got, later)
	assert.Nil(t, meta.FindStatusCondition(gone.Conditions, "Healthy"), "an object that is gone is not healthy")

	work := &workv1.ManifestWork{}
	work.Status = conclude(work, []manifest{m}, []result{saying(says("Healthy", "True"))}, epoch)
	assert.Equal(t, "ConditionRulesAggregated", find(t, work.Status.Conditions, "Healthy").Reason)
	assert.Contains(t, find(t, work.Status.Conditions, conditionRules).Message, "set by the agent itself", "where its author looks")
	m = ruled(t)
	status := conclude(work, []manifest{m}, []result{here()}, epoch)
	for _, name := range []string{"Healthy", conditionRules} {
		assert.Nil(t, meta.FindStatusCondition(status.Conditions, name), "a rule that is gone leaves nothing")
		assert.Nil(t, meta.FindStatusCondition(status.ResourceStatus.Manifests[0].Conditions, name))
	}
}

func TestCompleteOutlivesItsObject(t *testing.T) {
	m := ruled(t, celRule("Complete", "true"))
	r := saying(says("Complete", "True"))
	done := concludeManifest(1, &m, &r, nil, epoch)
	absent := result{presence: presenceAbsent}
	gone := concludeManifest(2, &m, &absent, &done, epoch)
	complete := find(t, gone.Conditions, "Complete")
	assert.Equal(t, metav1.ConditionTrue, complete.Status, "a Job that was cleared away is not run anew")
	assert.Equal(t, int64(1), complete.ObservedGeneration)
	m = ruled(t)
	assert.Nil(t, meta.FindStatusCondition(concludeManifest(3, &m, &absent, &gone, epoch).Conditions, "Complete"),
		"but without the rule it is")
	m = ruled(t, celRule("Complete", "true"))
	r = saying(says("Complete", "False"))
	open := concludeManifest(1, &m, &r, nil, epoch)
	assert.Nil(t, meta.FindStatusCondition(concludeManifest(1, &m, &absent, &open, epoch).Conditions, "Complete"))
}

// Weakness: W7
func TestFrozen(t *testing.T) {
	complete := func(status metav1.ConditionStatus, generation int64, reason string) []metav1.Condition {
		return []metav1.Condition{
			{Type: "Complete", Status: status, ObservedGeneration: generation, Reason: reason},
			{Type: "Applied", Status: metav1.ConditionTrue, ObservedGeneration: 2},
		}
	}
	withRule, without := ruled(t, celRule("Complete", "true")), ruled(t)
	const evaluated, aggregated = "ConditionRuleEvaluated", "ConditionRulesAggregated"
	for name, c := range map[string]struct {
		m              manifest
		manifest, work []metav1.Condition
		want           bool
	}{
		"nothing is known":                 {withRule, nil, nil, false},
		"the manifest is complete":         {withRule, complete("True", 1, evaluated), nil, true},
		"by whatever generation":           {withRule, complete("True", 0, evaluated), nil, true},
		"it is not any more":               {withRule, complete("False", 2, evaluated), nil, false},
		"but not by a rule":                {withRule, complete("True", 2, "Other"), nil, false},
		"its rule is gone":                 {without, complete("True", 2, evaluated), nil, false},
		"the work is complete":             {without, complete("Unknown", 2, ""), complete("True", 2, aggregated), true},
		"an earlier generation of it was":  {without, complete("Unknown", 2, ""), complete("True", 1, aggregated), false},
		"the work is, the manifest failed": {without, []metav1.Condition{{Type: "Applied", Status: "False", ObservedGeneration: 2}}, complete("True", 2, aggregated), false},
		"the work is not":                  {without, complete("Unknown", 2, ""), complete("False", 2, aggregated), false},
	} {
		t.Run(name, func(t *testing.T) {
			work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			work.Status.Conditions = c.work
			var status *workv1.ManifestCondition
			if c.manifest != nil {
				status = &workv1.ManifestCondition{Conditions: c.manifest}
			}
			assert.Equal(t, c.want, frozen(work, &c.m, status))
		})
	}
}

// Weakness: W7
func TestThawingWakesTheWork(t *testing.T) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	manifests := []manifest{ruled(t, celRule("Complete", "true")), read(t, configMap("b"))[0]}
	results := []result{saying(says("Complete", "True")), here()}
	work.Status = conclude(work, manifests, results, epoch)
	tasks := make([]task, len(manifests))
	for i := range tasks {
		tasks[i] = task{manifest: &manifests[i]}
		tasks[i].frozen = frozen(work, &manifests[i], &work.Status.ResourceStatus.Manifests[i])
		assert.True(t, tasks[i].frozen)
	}
	assert.Equal(t, reconcile.Done(), thawing(work, tasks, conclude(work, manifests, results, epoch), epoch))
	results[0] = saying(says("Complete", "False"))
	open := conclude(work, manifests, results, epoch)
	assert.Equal(t, reconcile.DoneUntil(epoch), thawing(work, tasks, open, epoch))
	tasks[0].frozen = false
	assert.Equal(t, reconcile.DoneUntil(epoch), thawing(work, tasks, open, epoch), "the rest of the work thaws with it")
	tasks[1].frozen = false
	assert.Equal(t, reconcile.Done(), thawing(work, tasks, open, epoch))
}

// Weakness: W7
func TestAppliedStaysHonestWhileFrozen(t *testing.T) {
	m := ruled(t, celRule("Complete", "true"))
	r := saying(says("Complete", "True"))
	first := concludeManifest(1, &m, &r, nil, epoch)
	r.behind = true
	second := concludeManifest(2, &m, &r, &first, epoch.Add(time.Hour))
	assert.Equal(t, find(t, first.Conditions, "Applied"), find(t, second.Conditions, "Applied"),
		"what this generation says was not applied")
	assert.Equal(t, int64(2), find(t, second.Conditions, "Complete").ObservedGeneration, "what it asks was answered")
	r.behind = false
	third := concludeManifest(2, &m, &r, &second, epoch.Add(time.Hour))
	assert.Equal(t, int64(2), find(t, third.Conditions, "Applied").ObservedGeneration)

	frozenTask := func(raw string, current bool) *task {
		m := read(t, configMap("a"))[0]
		return &task{manifest: &m, raw: []byte(raw), current: current, frozen: true}
	}
	live := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v, more: x}}`)
	const same, other = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"w"}}`
	assert.False(t, frozenTask(same, false).fallenBehind(live), "it says what it should")
	assert.True(t, frozenTask(other, false).fallenBehind(live))
	assert.True(t, frozenTask(same, false).fallenBehind(nil), "nobody knows")
	assert.False(t, frozenTask(other, true).fallenBehind(live), "this generation was applied before it froze")
}

// Weakness: W27
func TestAStatusHasRoom(t *testing.T) {
	long := func(n int) *string { return ptr.To(strings.Repeat("x", n)) }
	value := func(name string, n int) workv1.FeedbackValue {
		return workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.String, String: long(n)}}
	}
	first, second := here(), here()
	first.values = []workv1.FeedbackValue{value("a", 300<<10), value("b", 300<<10), value("c", 10)}
	second.values = []workv1.FeedbackValue{value("a", 300<<10)}
	second.rulings = []ruling{{"X", "True", "ConditionRuleEvaluated", *long(300 << 10)}}
	got := withinBounds([]result{first, second, here()}, maxForHub)
	require.Len(t, got[0].values, 2, "what fits is told")
	assert.Equal(t, "c", got[0].values[1].Name)
	assert.Contains(t, got[0].valuesErr, "too many or too long")
	assert.Empty(t, got[1].values)
	assert.Equal(t, metav1.ConditionTrue, got[1].rulings[0].status, "the answer stays")
	assert.Contains(t, got[1].rulings[0].message, "left out")
	assert.Equal(t, here(), got[2], "others are not touched")
	assert.Len(t, first.values, 3, "nor is what it came from")
	assert.Len(t, second.rulings[0].message, 300<<10)
}

func TestReadsOfRules(t *testing.T) {
	feedback := []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}
	rules := []workv1.ConditionRule{celRule("X")}
	assert.Zero(t, readsOf(&option{}))
	digests := map[digest]bool{}
	for _, o := range []option{{feedback: feedback}, {rules: rules}, {feedback: feedback, rules: rules}} {
		digests[readsOf(&o)] = true
	}
	assert.Len(t, digests, 3)
	assert.NotContains(t, digests, digest{})
}

func TestRulesAreEvaluatedWhenTheObjectMoves(t *testing.T) {
	m := ruled(t, celRule("X", "true"))
	m.reads = readsOf(&m.option)
	counted := &brokenCEL{}
	a := applier{cel: counted, paths: &paths{}}
	live := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, resourceVersion: "7"}}`)
	first := a.record(t.Context(), &task{manifest: &m}, live, nil)
	assert.Equal(t, 1, counted.calls)
	again := a.record(t.Context(), &task{manifest: &m, prior: first}, live, nil)
	assert.Equal(t, 1, counted.calls, "the same object has the same answers")
	assert.Equal(t, first.rulings, again.rulings)
	live.SetResourceVersion("8")
	a.record(t.Context(), &task{manifest: &m, prior: again}, live, nil)
	assert.Equal(t, 2, counted.calls)
	m.reads[0]++
	a.record(t.Context(), &task{manifest: &m, prior: again}, live, nil)
	assert.Equal(t, 3, counted.calls, "other rules have others")
}

func TestFreezingSparesWhatIsAsItShouldBe(t *testing.T) {
	m := ruled(t, celRule("Complete", "true"))
	warm := record{wish: m.wish}
	calm := &task{manifest: &m, prior: warm, frozen: true}
	calm.freeze()
	assert.True(t, calm.holds(), "no request")
	stirred := &task{manifest: &m, prior: warm, frozen: true, heard: newsChanged}
	stirred.freeze()
	assert.False(t, stirred.granted(), "so that it is applied when it thaws")
	open := &task{manifest: &m, prior: warm, heard: newsChanged}
	open.freeze()
	assert.True(t, open.granted())
}

func TestExpensiveRulesAreEvaluatedMoreRarely(t *testing.T) {
	_, cost := ruleAll(t.Context(), newCEL(), object(t, configMap("a")), []workv1.ConditionRule{celRule("A", costly(2))})
	assert.Positive(t, cost)
	assert.Equal(t, feedbackPause, (&record{}).pause())
	assert.Greater(t, (&record{cost: cost}).pause(), feedbackPause)
	assert.Less(t, (&record{cost: cost}).pause(), feedbackPause+time.Second)
	assert.Equal(t, feedbackPause+100*time.Second, (&record{cost: maxManifestCost}).pause())
}
