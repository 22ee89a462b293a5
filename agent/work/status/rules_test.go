package status

import (
	"errors"
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

	"github.com/spokelet/spokelet/agent/work/feedback"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// celRule is a rule of expressions.
func celRule(condition string, expressions ...string) workv1.ConditionRule {
	return workv1.ConditionRule{
		Type: workv1.CelConditionExpressionsType, Condition: condition, CelExpressions: expressions,
	}
}

// ruled is a manifest with rules.
func ruled(t *testing.T, rules ...workv1.ConditionRule) manifest.Manifest {
	t.Helper()
	m := read(t, configMap("a"))[0]
	m.Options.Rules, m.Options.RefusedRules = feedback.UsableRules(m.GVK, rules, Reserved()...)
	return m
}

// saying is an object with results of rules.
func saying(results ...metav1.Condition) Object {
	r := here()
	r.Feedback = &watch.Feedback{Conditions: results}
	return r
}

// says is the result of a rule that was evaluated.
func says(condition string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: condition, Status: status, Reason: workv1.ConditionRuleEvaluated, Message: "m"}
}

// Shows: work/rules-as-conditions, work/rules-missing
func TestConditionsOfRules(t *testing.T) {
	m := ruled(t, celRule("Healthy", "true"), celRule("Available", "true"), celRule("not a type!", "true"))
	r := saying(says("Healthy", "True"))
	got := concludeManifest(stamp{2, epoch}, &m, &r, nil)
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
	assert.Equal(t, got, concludeManifest(stamp{2, later}, &m, &r, &got), "it is stable")
	next := concludeManifest(stamp{3, later}, &m, &r, &got)
	assert.Equal(t, epoch, find(t, next.Conditions, "Healthy").LastTransitionTime.Time, "only a flip moves the time")
	assert.Equal(t, int64(3), find(t, next.Conditions, "Healthy").ObservedGeneration)
	r = saying(says("Healthy", "False"))
	assert.Equal(t, later, find(t, concludeManifest(stamp{3, later}, &m, &r, &next).Conditions, "Healthy").LastTransitionTime.Time)

	unread := Object{Presence: manifest.Unknown, Err: errors.New("x"), ReadErr: errors.New("x")}
	kept := concludeManifest(stamp{3, later}, &m, &unread, &got)
	assert.Equal(t, healthy, find(t, kept.Conditions, "Healthy"), "what could not be read stays as it was")
	absent := Object{Presence: manifest.Absent}
	gone := concludeManifest(stamp{3, later}, &m, &absent, &got)
	assert.Nil(t, meta.FindStatusCondition(gone.Conditions, "Healthy"), "an object that is gone is not healthy")

	work := &workv1.ManifestWork{}
	work.Status = Conclude(work, []manifest.Manifest{m}, []Object{saying(says("Healthy", "True"))}, epoch)
	assert.Equal(t, "ConditionRulesAggregated", find(t, work.Status.Conditions, "Healthy").Reason)
	assert.Contains(t, find(t, work.Status.Conditions, conditionRules).Message, "set by the agent itself", "where its author looks")
	m = ruled(t)
	status := Conclude(work, []manifest.Manifest{m}, []Object{here()}, epoch)
	for _, name := range []string{"Healthy", conditionRules} {
		assert.Nil(t, meta.FindStatusCondition(status.Conditions, name), "a rule that is gone leaves nothing")
		assert.Nil(t, meta.FindStatusCondition(status.ResourceStatus.Manifests[0].Conditions, name))
	}
}

func TestCompleteOutlivesItsObject(t *testing.T) {
	m := ruled(t, celRule("Complete", "true"))
	r := saying(says("Complete", "True"))
	done := concludeManifest(stamp{1, epoch}, &m, &r, nil)
	absent := Object{Presence: manifest.Absent}
	gone := concludeManifest(stamp{2, epoch}, &m, &absent, &done)
	complete := find(t, gone.Conditions, "Complete")
	assert.Equal(t, metav1.ConditionTrue, complete.Status, "a Job that was cleared away is not run again")
	assert.Equal(t, int64(1), complete.ObservedGeneration)
	m = ruled(t)
	assert.Nil(t, meta.FindStatusCondition(concludeManifest(stamp{3, epoch}, &m, &absent, &gone).Conditions, "Complete"),
		"but without the rule it is")
	m = ruled(t, celRule("Complete", "true"))
	r = saying(says("Complete", "False"))
	open := concludeManifest(stamp{1, epoch}, &m, &r, nil)
	assert.Nil(t, meta.FindStatusCondition(concludeManifest(stamp{1, epoch}, &m, &absent, &open).Conditions, "Complete"))
}

// Shows: work/complete-rechecked
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
		m              manifest.Manifest
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
			assert.Equal(t, c.want, Frozen(work, &c.m, status))
		})
	}
}

// Shows: work/complete-rechecked
func TestAppliedStaysHonestWhileFrozen(t *testing.T) {
	m := ruled(t, celRule("Complete", "true"))
	r := saying(says("Complete", "True"))
	first := concludeManifest(stamp{1, epoch}, &m, &r, nil)
	r.Behind = true
	second := concludeManifest(stamp{2, epoch.Add(time.Hour)}, &m, &r, &first)
	assert.Equal(t, find(t, first.Conditions, "Applied"), find(t, second.Conditions, "Applied"),
		"what this generation says was not applied")
	assert.Equal(t, int64(2), find(t, second.Conditions, "Complete").ObservedGeneration, "what it asks was answered")
	r.Behind = false
	third := concludeManifest(stamp{2, epoch.Add(time.Hour)}, &m, &r, &second)
	assert.Equal(t, int64(2), find(t, third.Conditions, "Applied").ObservedGeneration)
}

// Shows: work/status-fits
func TestAStatusHasRoom(t *testing.T) {
	long := func(n int) *string { return ptr.To(strings.Repeat("x", n)) }
	value := func(name string, n int) workv1.FeedbackValue {
		return workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.String, String: long(n)}}
	}
	first, second := here(), here()
	first.Feedback = &watch.Feedback{
		Values: []workv1.FeedbackValue{value("a", 300<<10), value("b", 300<<10), value("c", 10)},
	}
	second.Feedback = &watch.Feedback{Values: []workv1.FeedbackValue{value("a", 300<<10)}}
	second.Feedback.Conditions = []metav1.Condition{{Type: "X", Status: "True", Message: *long(300 << 10)}}
	got := withinBounds([]Object{first, second, here()}, maxForHub)
	require.Len(t, got[0].Feedback.Values, 2, "what fits is told")
	assert.Equal(t, "c", got[0].Feedback.Values[1].Name)
	assert.Contains(t, got[0].Feedback.Err, "too many or too long")
	assert.Empty(t, got[1].Feedback.Values)
	assert.Equal(t, metav1.ConditionTrue, got[1].Feedback.Conditions[0].Status, "the answer stays")
	assert.Contains(t, got[1].Feedback.Conditions[0].Message, "left out")
	assert.Equal(t, here(), got[2], "others are not touched")
	assert.Len(t, first.Feedback.Values, 3, "nor is what it came from")
	assert.Len(t, second.Feedback.Conditions[0].Message, 300<<10)
}

func TestConditionsThatNoRuleMaySet(t *testing.T) {
	m := ruled(t, celRule("Applied"), celRule("Available"), celRule("StatusFeedbackSynced"), celRule("Deleting"),
		celRule(conditionRules), celRule("Healthy"))
	assert.Len(t, m.Options.RefusedRules, 5)
	assert.Equal(t, []workv1.ConditionRule{celRule("Healthy")}, m.Options.Rules)
}

func TestWhatIsToldOfCompletions(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, ObservedGeneration: 1}
	}
	state := func(name string, conditions ...metav1.Condition) workv1.ManifestCondition {
		return workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{Kind: "Job", Resource: "jobs", Name: name}, Conditions: conditions,
		}
	}
	status := func(list ...workv1.ManifestCondition) workv1.ManifestWorkStatus {
		return workv1.ManifestWorkStatus{ResourceStatus: workv1.ManifestResourceStatus{Manifests: list}}
	}
	done := condition(workv1.ManifestComplete, metav1.ConditionTrue, rulePrefix+"d")
	open := condition(workv1.ManifestComplete, metav1.ConditionFalse, rulePrefix+"d")
	for sentence, c := range map[string]struct {
		hub, learned workv1.ManifestWorkStatus
		has          string
		complete     bool
		news         bool
	}{
		"what became complete is told":             {status(state("a")), status(state("a", done)), "a", true, true},
		"what was not complete is, too":            {status(state("a", open)), status(state("a", done)), "a", true, true},
		"what the hub knows is not told again":     {status(state("a", done)), status(state("a", done)), "a", true, false},
		"what is not complete is left to the pass": {status(state("a", done)), status(state("a", open)), "a", true, false},
		"what left the work is not told":           {status(state("a")), status(state("b", done)), "a", false, false},
		"what the hub knows nothing of is told":    {status(), status(state("a", done)), "a", true, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			m := manifest.Manifest{GVK: schema.GroupVersionKind{Kind: "Job"}, Name: c.has}
			m.Resource.Resource = "jobs"
			told, news := WithCompletions(&workv1.ManifestWork{Status: c.hub}, []manifest.Manifest{m}, &c.learned, time.Unix(5, 0))
			require.Len(t, told.ResourceStatus.Manifests, 1)
			assert.Equal(t, c.news, news)
			assert.Equal(t, c.complete, Completed(&told.ResourceStatus.Manifests[0]))
		})
	}

	// A work that is complete applies no manifest again that was applied, whether that one has a rule or not.
	applied := condition(workv1.ManifestApplied, metav1.ConditionTrue, "AppliedManifestComplete")
	learned := status(state("a", applied))
	learned.Conditions = []metav1.Condition{condition(workv1.WorkComplete, metav1.ConditionTrue, rulePrefix+"d")}
	m := manifest.Manifest{GVK: schema.GroupVersionKind{Kind: "Job"}, Name: "a"}
	m.Resource.Resource = "jobs"
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	told, _ := WithCompletions(work, []manifest.Manifest{m}, &learned, time.Unix(5, 0))
	work.Status = told
	require.Len(t, told.ResourceStatus.Manifests, 1)
	assert.True(t, Frozen(work, &m, &told.ResourceStatus.Manifests[0]))
}
