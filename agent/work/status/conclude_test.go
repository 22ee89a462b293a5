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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// epoch is an instant.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// read parses and resolves manifests; only ConfigMaps are served.
func read(t *testing.T, raws ...string) []manifest.Manifest {
	t.Helper()
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	spec := &workv1.ManifestWorkSpec{}
	var list []manifest.Manifest
	for i, raw := range raws {
		spec.Workload.Manifests = append(spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(raw)}})
		list = append(list, manifest.Parse(i, []byte(raw)))
	}
	for i := range list {
		if list[i].Retriable() {
			list[i].Resolve(kinds, spec,
				func(_ schema.GroupVersionKind, rules []workv1.ConditionRule) ([]workv1.ConditionRule, []string) {
					return rules, nil
				})
		}
	}
	return list
}

// configMap is the manifest of a ConfigMap in the namespace ns.
func configMap(name string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"ns"}}`
}

// here is the object of a manifest that is applied and whose object exists.
func here() Object { return Object{Presence: manifest.Present} }

// find returns a condition, or fails.
func find(t *testing.T, conditions []metav1.Condition, name string) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(conditions, name)
	require.NotNil(t, c, name)
	return *c
}

// Shows: work/manifest-conditions
func TestConcludeManifest(t *testing.T) {
	rules := []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}
	values := []workv1.FeedbackValue{{Name: "v"}}
	for name, c := range map[string]struct {
		raw       string
		feedback  []workv1.FeedbackRule
		object    Object
		applied   [3]string
		available [3]string
		feedbacks [3]string
	}{
		"all is well": {
			raw: configMap("a"), object: here(),
			applied:   [3]string{"True", "AppliedManifestComplete", "Apply manifest complete"},
			available: [3]string{"True", "ResourceAvailable", "Resource is available"},
			feedbacks: [3]string{"True", "NoStatusFeedbackSynced", ""},
		},
		"it failed and does not exist": {
			raw: configMap("a"), feedback: rules, object: Object{Err: errors.New("no"), Presence: manifest.Absent},
			applied:   [3]string{"False", "AppliedManifestFailed", "Failed to apply manifest: no"},
			available: [3]string{"False", "ResourceNotAvailable", "Resource is not available"},
			feedbacks: [3]string{
				"False", "StatusFeedbackSyncFailed", "Sync status feedback failed with error the resource does not exist",
			},
		},
		"it cannot be read": {
			raw: configMap("a"), object: Object{Err: errors.New("no"), ReadErr: errors.New("closed")},
			applied:   [3]string{"False", "AppliedManifestFailed", "Failed to apply manifest: no"},
			available: [3]string{"Unknown", "FetchingResourceFailed", "Failed to fetch resource: closed"},
		},
		"it is unknown": {
			raw: `{"kind":"X"}`, object: Object{Err: errors.New("no")},
			applied:   [3]string{"False", "AppliedManifestFailed", "Failed to apply manifest: no"},
			available: [3]string{"Unknown", "IncompleteResourceMeta", "Resource meta is incomplete"},
		},
		"ignoreFields are the matter": {
			raw: configMap("a"), object: Object{
				Err:      &manifest.PermanentError{Reason: workv1.AppliedManifestSSAIgnoreFieldError, Message: "no"},
				Presence: manifest.Present,
			},
			applied:   [3]string{"False", "AppliedManifestSSAIgnoreFieldError", "Failed to process ignoreFields: no"},
			available: [3]string{"True", "ResourceAvailable", "Resource is available"},
			feedbacks: [3]string{"True", "NoStatusFeedbackSynced", ""},
		},
		"feedback came": {
			raw: configMap("a"), feedback: rules, object: Object{Presence: manifest.Present, Feedback: &watch.Feedback{Values: values}},
			applied:   [3]string{"True", "AppliedManifestComplete", "Apply manifest complete"},
			available: [3]string{"True", "ResourceAvailable", "Resource is available"},
			feedbacks: [3]string{"True", "StatusFeedbackSynced", ""},
		},
		"feedback came in part": {
			raw: configMap("a"), feedback: rules,
			object:    Object{Presence: manifest.Present, Feedback: &watch.Feedback{Values: values, Err: "bad"}},
			applied:   [3]string{"True", "AppliedManifestComplete", "Apply manifest complete"},
			available: [3]string{"True", "ResourceAvailable", "Resource is available"},
			feedbacks: [3]string{"False", "StatusFeedbackSyncFailed", "Sync status feedback failed with error bad"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := read(t, c.raw)[0]
			m.Options.Feedback = c.feedback
			got := concludeManifest(stamp{4, epoch}, &m, &c.object, nil)
			as := func(name string) [3]string {
				found := meta.FindStatusCondition(got.Conditions, name)
				if found == nil {
					return [3]string{}
				}
				return [3]string{string(found.Status), found.Reason, found.Message}
			}
			assert.Equal(t, c.applied, as("Applied"))
			assert.Equal(t, c.available, as("Available"))
			assert.Equal(t, c.feedbacks, as("StatusFeedbackSynced"))
			assert.Equal(t, int64(4), find(t, got.Conditions, "Applied").ObservedGeneration)
			assert.Zero(t, find(t, got.Conditions, "Available").ObservedGeneration)
			if c.object.Feedback != nil {
				assert.Equal(t, c.object.Feedback.Values, got.StatusFeedbacks.Values)
			} else {
				assert.Empty(t, got.StatusFeedbacks.Values)
			}
		})
	}
}

// Shows: work/times-and-generations, work/feedback-pattern
func TestTransitionTimes(t *testing.T) {
	m := read(t, configMap("a"))[0]
	m.Options.Feedback = []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}
	later, last := epoch.Add(time.Hour), epoch.Add(2*time.Hour)
	value := func(name string) Object {
		r := here()
		r.Feedback = &watch.Feedback{Values: []workv1.FeedbackValue{{Name: name}}}
		return r
	}
	when := func(s workv1.ManifestCondition, name string) time.Time {
		return find(t, s.Conditions, name).LastTransitionTime.Time
	}
	r := value("x")
	first := concludeManifest(stamp{1, epoch}, &m, &r, nil)

	same := concludeManifest(stamp{1, later}, &m, &r, &first)
	assert.Equal(t, first, same, "nothing changed, nothing moves")

	next := concludeManifest(stamp{2, later}, &m, &r, &first)
	assert.Equal(t, later, when(next, "Applied"), "a new generation moves Applied")
	assert.Equal(t, epoch, when(next, "Available"))
	assert.Equal(t, epoch, when(next, "StatusFeedbackSynced"))

	r = value("y")
	changed := concludeManifest(stamp{2, last}, &m, &r, &next)
	assert.Equal(t, later, when(changed, "Applied"))
	assert.Equal(t, last, when(changed, "StatusFeedbackSynced"), "new values move StatusFeedbackSynced")

	unread := Object{Presence: manifest.Unknown, Err: errors.New("x"), ReadErr: errors.New("x")}
	kept := concludeManifest(stamp{2, last}, &m, &unread, &changed)
	assert.Equal(t, changed.StatusFeedbacks, kept.StatusFeedbacks, "what cannot be read keeps its values")
	absent := Object{Presence: manifest.Absent}
	gone := concludeManifest(stamp{2, last}, &m, &absent, &changed)
	assert.Empty(t, gone.StatusFeedbacks.Values, "what is gone has none")
}

// Shows: work/own-generation, work/work-conditions
func TestConcludeWork(t *testing.T) {
	absent, unknown := Object{Presence: manifest.Absent}, Object{Err: errors.New("x"), ReadErr: errors.New("x")}
	for name, c := range map[string]struct {
		results   []Object
		applied   string
		available [3]string
	}{
		"nothing at all": {nil, "", [3]string{"Unknown", "ResourcesStatusUnknown", "cannot get any available resource "}},
		"all is well":    {[]Object{here(), here()}, "True", [3]string{"True", "ResourcesAvailable", "All resources are available"}},
		"one is missing": {
			[]Object{here(), absent, unknown}, "False",
			[3]string{"False", "ResourcesNotAvailable", "1 of 3 resources are not available: manifest 1 (ConfigMap ns/xx): Resource is not available"},
		},
		"one is unknown": {
			[]Object{here(), unknown}, "False",
			[3]string{"Unknown", "ResourcesStatusUnknown", "1 of 2 resources have unknown status: manifest 1 (ConfigMap ns/xx): Failed to fetch resource: x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var raws []string
			for i := range c.results {
				raws = append(raws, configMap(strings.Repeat("x", i+1)))
			}
			work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			status := Conclude(work, read(t, raws...), c.results, epoch)
			available := find(t, status.Conditions, "Available")
			assert.Equal(t, c.available[0], string(available.Status))
			assert.Equal(t, c.available[1], available.Reason)
			assert.Equal(t, c.available[2], available.Message)
			assert.Equal(t, int64(3), available.ObservedGeneration)
			if c.applied == "" {
				assert.Nil(t, meta.FindStatusCondition(status.Conditions, "Applied"))
			} else {
				assert.Equal(t, c.applied, string(find(t, status.Conditions, "Applied").Status))
			}
			work.Status = status
			assert.Equal(t, status, Conclude(work, read(t, raws...), c.results, epoch.Add(time.Hour)), "and it is stable")
			work.Generation = 4
			moved := Conclude(work, read(t, raws...), c.results, epoch.Add(time.Hour))
			assert.Equal(t, epoch, find(t, moved.Conditions, "Available").LastTransitionTime.Time)
			assert.Equal(t, int64(4), find(t, moved.Conditions, "Available").ObservedGeneration)
		})
	}
}

func TestFormerStatusIsFound(t *testing.T) {
	entry := func(ordinal int32, name string) workv1.ManifestCondition {
		return workv1.ManifestCondition{ResourceMeta: workv1.ManifestResourceMeta{Ordinal: ordinal, Name: name}}
	}
	f := Index([]workv1.ManifestCondition{entry(0, "a"), entry(1, "b"), entry(2, "b")})
	assert.Equal(t, int32(2), f.Find(entry(2, "b").ResourceMeta).ResourceMeta.Ordinal, "exactly")
	assert.Equal(t, int32(0), f.Find(entry(5, "a").ResourceMeta).ResourceMeta.Ordinal, "moved")
	assert.Nil(t, f.Find(entry(5, "b").ResourceMeta), "ambiguous")
	assert.Nil(t, f.Find(entry(0, "c").ResourceMeta), "new")
}

func TestAggregateRule(t *testing.T) {
	list := func(statuses ...string) []workv1.ManifestCondition {
		var out []workv1.ManifestCondition
		for _, s := range statuses {
			var c workv1.ManifestCondition
			for _, name := range []string{"Ready", "Progressing"} {
				c.Conditions = append(c.Conditions, metav1.Condition{
					Type: name, Status: metav1.ConditionStatus(s), Message: "m",
				})
			}
			out = append(out, c)
		}
		return append(out, workv1.ManifestCondition{})
	}
	for name, c := range map[string]struct {
		list               []workv1.ManifestCondition
		ready, progressing string
		message            string
	}{
		"one true":          {list("True"), "True", "True", "m"},
		"all true":          {list("True", "True"), "True", "True", "Aggregated from 2 manifest conditions"},
		"one false":         {list("True", "False", "Unknown"), "False", "True", "Aggregated from 3 manifest conditions"},
		"one unknown":       {list("True", "Unknown"), "Unknown", "True", "Aggregated from 2 manifest conditions"},
		"false and unknown": {list("False", "Unknown"), "False", "Unknown", "Aggregated from 2 manifest conditions"},
		"all false":         {list("False", "False"), "False", "False", "Aggregated from 2 manifest conditions"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.ready, string(aggregateRule(c.list, "Ready").Status))
			assert.Equal(t, c.progressing, string(aggregateRule(c.list, "Progressing").Status))
			assert.Equal(t, c.message, aggregateRule(c.list, "Ready").Message)
		})
	}
}
