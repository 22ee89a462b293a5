package works

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/intern"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

func testSet() Set {
	return Set{
		AddOn: &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "addon-uid"}},
		Side:  Managed, Purpose: Deploy, Namespace: "c1",
	}
}

// trimmed is a work as a cache has it.
func trimmed(t *testing.T, work *workv1.ManifestWork) *workv1.ManifestWork {
	t.Helper()
	out, err := Trim(&intern.Table{})(work.DeepCopy())
	require.NoError(t, err)
	small, ok := out.(*workv1.ManifestWork)
	require.True(t, ok)
	return small
}

// run does a plan in memory and returns the works afterwards.
func run(t *testing.T, set Set, objects []*unstructured.Unstructured, have []*workv1.ManifestWork) ([]*workv1.ManifestWork, []Step) {
	t.Helper()
	d, err := Divide(objects, false)
	require.NoError(t, err)
	o := OptionsOf(addon.Rendering{Objects: objects}, nil, func(key string) string {
		return Fingerprint(key, nil, addon.HealthLease, "")
	}, d)
	planned, err := Plan(set, d.Deploy[Managed], o, have)
	require.NoError(t, err)
	after := slices.Clone(planned.Kept)
	for _, s := range planned.Steps {
		if s.Verb != reconcile.Delete {
			after = append(after, s.After)
		}
	}
	return after, planned.Steps
}

// TestPlansAreTheSameForDigests: whatever objects come and go, a plan for cached works has the steps of a plan for works
// with manifests, and what it writes has all manifests in full.
//
// Shows: hub/digests
func TestPlansAreTheSameForDigests(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	set := testSet()
	var full []*workv1.ManifestWork
	for range 40 {
		var objects []*unstructured.Unstructured
		for i := range 8 {
			if random.IntN(3) > 0 {
				objects = append(objects, configMap(fmt.Sprintf("o%d", i), random.IntN(2)*150_000+random.IntN(3)))
			}
		}
		var cached []*workv1.ManifestWork
		for _, work := range full {
			cached = append(cached, trimmed(t, work))
		}
		after, steps := run(t, set, objects, full)
		_, sameSteps := run(t, set, objects, cached)
		require.Len(t, sameSteps, len(steps))
		for i, s := range sameSteps {
			require.Equal(t, steps[i].Verb, s.Verb)
			require.Equal(t, steps[i].Object().Name, s.Object().Name)
			if s.Verb == reconcile.Delete {
				continue
			}
			require.Equal(t, steps[i].After.Annotations, s.After.Annotations)
			if s.Verb == reconcile.Create || !sameDigests(s.Before, s.After) {
				require.Equal(t, steps[i].After.Spec, s.After.Spec)
			}
		}
		full = after
		_, steps = run(t, set, objects, full)
		require.Empty(t, steps, "the next pass has nothing to do")
	}
}

func sameDigests(a, b *workv1.ManifestWork) bool {
	left, right := ReadAll(a), ReadAll(b)
	if len(left) != len(right) {
		return false
	}
	for i := range left {
		if left[i].Sum != right[i].Sum {
			return false
		}
	}
	return true
}

func TestTrim(t *testing.T) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Name: "w", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}, Annotations: map[string]string{"k": "v"},
	}}
	for _, raw := range []string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"ns"},"spec":{"replicas":0}}`,
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","labels":{"open-cluster-management.io/addon-pre-delete":""},` +
			`"annotations":{"addon.spokelet.io/pre-delete-deadline":"5m"}}}`,
		`not JSON`,
	} {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(raw)}})
	}
	applied := metav1.Condition{Type: workv1.ManifestApplied, Status: metav1.ConditionTrue}
	refused := metav1.Condition{Type: workv1.ManifestApplied, Status: metav1.ConditionFalse, Message: "no"}
	ready := workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{{Name: "ReadyReplicas"}}}
	reported := []workv1.ManifestCondition{
		{ResourceMeta: workv1.ManifestResourceMeta{Name: "fine"}, Conditions: []metav1.Condition{applied}},
		{ResourceMeta: workv1.ManifestResourceMeta{Name: "refused"}, Conditions: []metav1.Condition{refused}},
		{ResourceMeta: workv1.ManifestResourceMeta{Name: "feeds"}, StatusFeedbacks: ready},
	}
	for _, m := range reported {
		m.Conditions = append(slices.Clone(m.Conditions), metav1.Condition{Type: workv1.ManifestAvailable})
		work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, m)
	}
	want := ReadAll(work)
	small := trimmed(t, work)
	assert.Equal(t, want, ReadAll(small))
	assert.Equal(t, want, ReadAll(trimmed(t, small)), "a transformation may run twice")
	assert.Equal(t, want, ReadAll(small.DeepCopy()))
	assert.Empty(t, small.ManagedFields)
	assert.Equal(t, work.Annotations, small.Annotations)
	assert.Nil(t, small.Spec.Workload.Manifests[0].Raw)
	assert.Equal(t, []workv1.ManifestCondition{reported[1], reported[2]}, small.Status.ResourceStatus.Manifests)
	assert.Equal(t, "not JSON", string(small.Spec.Workload.Manifests[2].Raw))
	assert.Equal(t, int64(0), want[0].Replicas)
	assert.Equal(t, &Terms{Deadline: "5m"}, want[1].Terms)

	text, err := json.Marshal(small.Spec.Workload.Manifests[0])
	require.NoError(t, err)
	assert.NotContains(t, string(text), "kind", "the API server must refuse a digest as a manifest")

	node := &corev1.Node{}
	same, err := Trim(&intern.Table{})(node)
	require.NoError(t, err)
	assert.Same(t, node, same)
}

func TestNumbersAreComparedAsTheyAre(t *testing.T) {
	manifest := func(number string) *workv1.Manifest {
		return &workv1.Manifest{RawExtension: runtime.RawExtension{
			Raw: fmt.Appendf(nil, `{"kind":"K","apiVersion":"v1", "data":{"n":%s}}`, number),
		}}
	}
	large, err := Read(manifest("9007199254740993"))
	require.NoError(t, err)
	near, err := Read(manifest("9007199254740992"))
	require.NoError(t, err)
	assert.NotEqual(t, large.Sum, near.Sum)
	m, err := encode(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "K", "data": map[string]any{"n": int64(9007199254740993)},
	}}, 0)
	require.NoError(t, err)
	assert.Equal(t, m.sum, large.Sum)
}

func TestCurrent(t *testing.T) {
	objects := []*unstructured.Unstructured{configMap("a", 300_000), configMap("b", 300_000)}
	set := testSet()
	written, _ := run(t, set, objects, nil)
	require.Len(t, written, 2)
	var record Rendered
	require.NoError(t, json.Unmarshal([]byte(written[0].Annotations[names.AnnotationRenderedFrom]), &record))
	tests := map[string]struct {
		change  func(works []*workv1.ManifestWork) []*workv1.ManifestWork
		inputs  string
		by      string
		current bool
	}{
		"what was written":              {inputs: record.Inputs, current: true},
		"what another version wrote":    {inputs: record.Inputs, by: "v2", current: true},
		"other inputs":                  {inputs: "other"},
		"inputs that nobody knows":      {inputs: ""},
		"a work is gone":                {inputs: record.Inputs, change: func(w []*workv1.ManifestWork) []*workv1.ManifestWork { return w[:1] }},
		"no work":                       {inputs: record.Inputs, change: func([]*workv1.ManifestWork) []*workv1.ManifestWork { return nil }},
		"a work of another set is fine": {inputs: record.Inputs, current: true, change: withForeign},
		"a manifest is changed": {inputs: record.Inputs, change: changed(func(w *workv1.ManifestWork) {
			w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)
		})},
		"an executor": {inputs: record.Inputs, change: changed(func(w *workv1.ManifestWork) {
			w.Spec.Executor = &workv1.ManifestWorkExecutor{}
		})},
		"feedback rules are changed": {inputs: record.Inputs, change: changed(func(w *workv1.ManifestWork) {
			w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{}}
		})},
		"a work is being deleted": {inputs: record.Inputs, change: changed(func(w *workv1.ManifestWork) {
			w.DeletionTimestamp = &metav1.Time{}
		})},
		"a label of ours is gone": {inputs: record.Inputs, change: changed(func(w *workv1.ManifestWork) { w.Labels = nil })},
		"a label of others":       {inputs: record.Inputs, current: true, change: changed(func(w *workv1.ManifestWork) { w.Labels["x"] = "y" })},
		"the owner is no controller": {inputs: record.Inputs, change: changed(func(w *workv1.ManifestWork) {
			w.OwnerReferences[0].Controller = nil
		})},
		"the hashes are changed": {inputs: record.Inputs, change: changed(func(w *workv1.ManifestWork) {
			w.Annotations[names.AnnotationConfigSpecHash] = "{}"
		})},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			var have []*workv1.ManifestWork
			for _, work := range written {
				have = append(have, work.DeepCopy())
			}
			if test.change != nil {
				have = test.change(have)
			}
			standing, current := Current(have, Options{Inputs: test.inputs, By: test.by}, set)
			assert.Equal(t, test.current, current)
			for i := range have {
				have[i] = trimmed(t, have[i])
			}
			digests, current := Current(have, Options{Inputs: test.inputs, By: test.by}, set)
			assert.Equal(t, test.current, current, "as digests")
			assert.Equal(t, standing, digests)
			assert.Equal(t, test.by != "", standing.Foreign, "another version than the recorded one")
		})
	}
}

func changed(change func(*workv1.ManifestWork)) func([]*workv1.ManifestWork) []*workv1.ManifestWork {
	return func(all []*workv1.ManifestWork) []*workv1.ManifestWork {
		change(all[0])
		return all
	}
}

func withForeign(all []*workv1.ManifestWork) []*workv1.ManifestWork {
	return append(all, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "addon-a-deploy-9"}})
}

func TestFingerprint(t *testing.T) {
	config := addon.ChosenConfig{ConfigSpecHash: addonv1beta1.ConfigSpecHash{SpecHash: "h"}}
	one := Fingerprint("k", []addon.ChosenConfig{config}, addon.HealthLease, "")
	assert.Len(t, one, 2*shortHash)
	assert.Equal(t, one, Fingerprint("k", []addon.ChosenConfig{config}, addon.HealthLease, ""))
	for name, other := range map[string]string{
		"another key":           Fingerprint("l", []addon.ChosenConfig{config}, addon.HealthLease, ""),
		"another configuration": Fingerprint("k", nil, addon.HealthLease, ""),
		"another probe":         Fingerprint("k", []addon.ChosenConfig{config}, addon.HealthWorkloads, ""),
		"another host":          Fingerprint("k", []addon.ChosenConfig{config}, addon.HealthLease, "h"),
	} {
		assert.NotEqual(t, one, other, name)
	}
}
