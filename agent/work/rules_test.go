package work

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/feedback"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// celRule is a rule of expressions.
func celRule(condition string, expressions ...string) workv1.ConditionRule {
	return workv1.ConditionRule{
		Type: workv1.CelConditionExpressionsType, Condition: condition, CelExpressions: expressions,
	}
}

// ruled is a manifest with rules.
func ruled(t *testing.T, rules ...workv1.ConditionRule) manifest {
	t.Helper()
	m := read(t, configMap("a"))[0]
	m.option.rules, m.refused = feedback.UsableRules(m.gvk, rules, reservedConditions()...)
	return m
}

// saying is a result with rulings.
func saying(rulings ...feedback.RuleResult) result {
	r := here()
	r.rulings = rulings
	return r
}

// says is the ruling of a rule that was evaluated.
func says(condition string, status metav1.ConditionStatus) feedback.RuleResult {
	return feedback.RuleResult{Condition: condition, Status: status, Reason: workv1.ConditionRuleEvaluated, Message: "m"}
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
	second.rulings = []feedback.RuleResult{{Condition: "X", Status: "True", Message: *long(300 << 10)}}
	got := withinBounds([]result{first, second, here()}, maxForHub)
	require.Len(t, got[0].values, 2, "what fits is told")
	assert.Equal(t, "c", got[0].values[1].Name)
	assert.Contains(t, got[0].valuesErr, "too many or too long")
	assert.Empty(t, got[1].values)
	assert.Equal(t, metav1.ConditionTrue, got[1].rulings[0].Status, "the answer stays")
	assert.Contains(t, got[1].rulings[0].Message, "left out")
	assert.Equal(t, here(), got[2], "others are not touched")
	assert.Len(t, first.values, 3, "nor is what it came from")
	assert.Len(t, second.rulings[0].Message, 300<<10)
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

func TestRulesAreEvaluatedWhenTheObjectMoves(t *testing.T) {
	m := ruled(t, celRule("X", "object.data.k == 'v'"))
	m.reads = readsOf(&m.option)
	a := applier{evaluator: feedback.New(false, 0)}
	live := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, resourceVersion: "7"}, data: {k: v}}`)
	status := func(rec *record) metav1.ConditionStatus {
		require.Len(t, rec.rulings, 1)
		return rec.rulings[0].Status
	}
	first := a.record(t.Context(), &task{manifest: &m}, live, nil)
	assert.Equal(t, metav1.ConditionTrue, status(&first))
	// Without a new version nobody looks at what changed, which shows whether the rule was evaluated again.
	require.NoError(t, unstructured.SetNestedField(live.Object, "w", "data", "k"))
	again := a.record(t.Context(), &task{manifest: &m, prior: first}, live, nil)
	assert.Equal(t, metav1.ConditionTrue, status(&again), "the same object has the same answers")
	live.SetResourceVersion("8")
	moved := a.record(t.Context(), &task{manifest: &m, prior: again}, live, nil)
	assert.Equal(t, metav1.ConditionFalse, status(&moved))
	require.NoError(t, unstructured.SetNestedField(live.Object, "v", "data", "k"))
	m.reads[0]++
	other := a.record(t.Context(), &task{manifest: &m, prior: moved}, live, nil)
	assert.Equal(t, metav1.ConditionTrue, status(&other), "other rules have others")
}

func TestExpensiveRulesAreEvaluatedMoreRarely(t *testing.T) {
	assert.Equal(t, feedbackPause, (&record{}).pause())
	assert.Equal(t, feedbackPause+10*time.Millisecond, (&record{cost: 1000}).pause())
	assert.Equal(t, feedbackPause+100*time.Second, (&record{cost: feedback.MaxManifestCost}).pause())
}

func TestConditionsThatNoRuleMaySet(t *testing.T) {
	m := ruled(t, celRule("Applied"), celRule("Available"), celRule("StatusFeedbackSynced"), celRule("Deleting"),
		celRule(conditionRules), celRule("Healthy"))
	assert.Len(t, m.refused, 5)
	assert.Equal(t, []workv1.ConditionRule{celRule("Healthy")}, m.option.rules)
}
