package latency

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

var at = time.Date(2026, 1, 2, 4, 4, 5, 6_700_000, time.FixedZone("elsewhere", 3600))

// workOf returns a work with manifests, of which a status says for which generation it is and what became of the first.
func workOf(generation int64, manifests int) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: "c1", Name: "w", UID: "u1", Generation: generation, Labels: map[string]string{"team": "a"},
	}}
	w.Spec.Workload.Manifests = make([]workv1.Manifest, manifests)
	return w
}

func withStatus(w *workv1.ManifestWork, generation int64, first metav1.ConditionStatus) *workv1.ManifestWork {
	w.Status.Conditions = []metav1.Condition{{Type: workv1.WorkApplied, Status: first, ObservedGeneration: generation}}
	w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
		Conditions: []metav1.Condition{{Type: workv1.ManifestApplied, Status: first}},
	}}
	return w
}

func resourceNamed(name string, err error) Resource {
	return Resource{Err: err, Version: "7", Manifest: &manifest.Manifest{
		GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "ns", Name: name,
	}}
}

// taken returns the lines since the last call.
func taken(t *testing.T, out *bytes.Buffer) []map[string]any {
	t.Helper()
	lines := []map[string]any{}
	for raw := range bytes.Lines(out.Bytes()) {
		one := map[string]any{}
		require.NoError(t, json.Unmarshal(raw, &one), string(raw))
		lines = append(lines, one)
	}
	out.Reset()
	return lines
}

// Shows: work/latency-lines
func TestTheFirstPassOverAGenerationIsTold(t *testing.T) {
	out := &bytes.Buffer{}
	log := New(out, clocktesting.NewFakePassiveClock(at))
	readOnly := resourceNamed("c", nil)
	readOnly.Manifest.Options.Strategy.Type = workv1.UpdateStrategyTypeReadOnly
	pass := log.Begin(workOf(3, 3))
	pass.Resource(0, resourceNamed("a", nil))
	pass.Resource(1, resourceNamed("b", errors.New("no")))
	pass.Resource(2, readOnly)
	pass.End()
	line := func(flow string, more map[string]any) map[string]any {
		one := map[string]any{
			"flow": flow, "mw_name": "w", "mw_namespace": "c1", "generation": 3.0, "labels": map[string]any{"team": "a"},
			"ts_utc": "2026-01-02T03:04:05.006Z", "ts_epoch_ms": float64(at.UnixMilli()),
		}
		for key, value := range more {
			one[key] = value
		}
		return one
	}
	of := func(name, outcome, version string) map[string]any {
		return line("mw_resource_spoke_apply", map[string]any{
			"applied_kind": "ConfigMap", "applied_namespace": "ns", "applied_name": name, "outcome": outcome,
			"applied_resource_version": version,
		})
	}
	assert.Equal(t, []map[string]any{
		line("mw_spoke_apply", map[string]any{"resource_count": 3.0}),
		of("a", "applied", "7"), of("b", "failed", ""), of("c", "read_only", "7"),
		line("mw_spoke_apply_result", map[string]any{
			"resource_count": 3.0, "applied_count": 1.0, "failed_count": 1.0, "read_only_count": 1.0, "outcome": "partial",
		}),
	}, taken(t, out))
}

// Shows: work/latency-lines
func TestALaterPassTellsWhatChanged(t *testing.T) {
	out := &bytes.Buffer{}
	log := New(out, clocktesting.NewFakePassiveClock(at))
	flows := func() (flows []any) {
		for _, one := range taken(t, out) {
			flows = append(flows, one["flow"])
			if was, changed := one["prev_outcome"]; changed {
				flows = append(flows, was, one["outcome"])
			}
		}
		return flows
	}
	run := func(w *workv1.ManifestWork, err error) {
		pass := log.Begin(w)
		pass.Resource(0, resourceNamed("a", err))
		pass.End()
	}
	whole := []any{"mw_spoke_apply", "mw_resource_spoke_apply", "mw_spoke_apply_result"}
	run(workOf(1, 1), errors.New("no"))
	assert.Equal(t, whole, flows())
	run(workOf(1, 1), errors.New("no"))
	assert.Empty(t, flows(), "the hub has no status yet, and nothing changed")
	run(workOf(1, 1), nil)
	assert.Equal(t, []any{"mw_resource_spoke_sync", "failed", "applied"}, flows())
	run(withStatus(workOf(1, 1), 1, metav1.ConditionFalse), nil)
	assert.Empty(t, flows(), "the status is behind")
	run(withStatus(workOf(2, 1), 1, metav1.ConditionTrue), nil)
	assert.Equal(t, whole, flows(), "an edit")
	again := workOf(2, 1)
	again.UID = "u2"
	run(again, nil)
	assert.Equal(t, whole, flows(), "a work that was made again")

	log = New(out, clocktesting.NewFakePassiveClock(at)) // a restart
	run(withStatus(workOf(2, 1), 2, metav1.ConditionTrue), nil)
	assert.Empty(t, flows(), "the process before told it")
	log.Forget("c1", "w")
	run(withStatus(workOf(2, 1), 2, metav1.ConditionTrue), errors.New("no"))
	assert.Equal(t, []any{"mw_resource_spoke_sync", "applied", "failed"}, flows())
}

func TestTheOutcomeOfAWork(t *testing.T) {
	failed, read := resourceNamed("a", errors.New("no")), resourceNamed("b", nil)
	read.Manifest.Options.Strategy.Type = workv1.UpdateStrategyTypeReadOnly
	for outcome, resources := range map[string][]Resource{
		"applied":   {resourceNamed("a", nil), read},
		"failed":    {failed, read},
		"partial":   {failed, resourceNamed("a", nil)},
		"read_only": {read},
	} {
		out := &bytes.Buffer{}
		pass := New(out, clocktesting.NewFakePassiveClock(at)).Begin(workOf(1, len(resources)))
		for i, one := range resources {
			pass.Resource(i, one)
		}
		pass.End()
		lines := taken(t, out)
		assert.Equal(t, outcome, lines[len(lines)-1]["outcome"])
	}
}

func TestWithoutALogNothingIsWritten(t *testing.T) {
	var log *Log
	pass := log.Begin(workOf(1, 1))
	assert.Nil(t, pass)
	pass.Resource(0, resourceNamed("a", nil))
	pass.End()
	log.Forget("c1", "w")
}
