package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: work/phases
func TestPhase(t *testing.T) {
	live, dying := metav1.ObjectMeta{}, metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: epoch}}
	work := func(m metav1.ObjectMeta) *workv1.ManifestWork { return &workv1.ManifestWork{ObjectMeta: m} }
	applied := func(m metav1.ObjectMeta) *workv1.AppliedManifestWork {
		return &workv1.AppliedManifestWork{ObjectMeta: m}
	}
	for name, c := range map[string]struct {
		facts facts
		want  phase
	}{
		"no work":                         {facts{stale: true}, phaseGone},
		"no work, but what was just made": {facts{applied: applied(live)}, phaseAbandon},
		"a cache that is behind":          {facts{work: work(dying), stale: true}, phaseStale},
		"a work that is deleted":          {facts{work: work(dying), applied: applied(dying)}, phaseDelete},
		"a live work of a deleted other":  {facts{work: work(live), applied: applied(dying)}, phaseRestart},
		"a live work":                     {facts{work: work(live), applied: applied(live)}, phaseApply},
		"a new work":                      {facts{work: work(live)}, phaseApply},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.facts.phase()) })
	}
}

// Shows: work/eviction-decided
func TestStageOfEviction(t *testing.T) {
	start := metav1.NewTime(epoch)
	for name, c := range map[string]struct {
		agent   string
		start   *metav1.Time
		dying   bool
		managed bool
		fate    missing.Fate
		grace   time.Duration
		now     time.Time
		want    stage
		wake    time.Time
	}{
		"of another agent":     {agent: "other", want: stageForeign},
		"of another agent, so": {agent: "other", dying: true, want: stageForeign},
		"with its work":        {agent: "me", managed: true, dying: true, want: stageManaged},
		"being deleted":        {agent: "me", dying: true, want: stageDelete},
		"never":                {agent: "me", grace: EvictionDisabled, start: &start, want: stageKept},
		"the grace begins":     {agent: "me", grace: time.Hour, now: epoch, want: stageStart, wake: epoch.Add(time.Hour)},
		"the grace runs": {
			agent: "me", grace: time.Hour, start: &start, now: epoch.Add(time.Minute),
			want: stageWait, wake: epoch.Add(time.Hour),
		},
		"the grace is over": {agent: "me", grace: time.Hour, start: &start, now: epoch.Add(time.Hour), want: stageEvict},
		"held with others":  {agent: "me", fate: missing.Held, grace: time.Hour, now: epoch, want: stageHold},
		"held, whenever": {
			agent: "me", fate: missing.Held, grace: 1, start: &start, now: epoch.Add(time.Hour), want: stageHold,
		},
		"held, and back":    {agent: "me", fate: missing.Held, managed: true, want: stageManaged},
		"held, and deleted": {agent: "me", fate: missing.Held, dying: true, want: stageDelete},
		"held, and never":   {agent: "me", fate: missing.Held, grace: EvictionDisabled, want: stageKept},
		"confirmed": {
			agent: "me", fate: missing.Confirmed, grace: time.Hour, start: &start, now: epoch, want: stageConfirm,
		},
		"that is recorded": {
			agent: "me", fate: missing.Evicted, grace: time.Hour, start: &start, now: epoch, want: stageEvict,
		},
		"another's is not": {agent: "other", fate: missing.Evicted, want: stageForeign},
	} {
		t.Run(name, func(t *testing.T) {
			e := &evictor{Reconciler: &Reconciler{AgentID: "me", EvictionGrace: c.grace}}
			applied := &workv1.AppliedManifestWork{}
			applied.Spec.AgentID = c.agent
			applied.Status.EvictionStartTime = c.start
			if c.dying {
				applied.DeletionTimestamp = &start
			}
			got, wake := e.stageOf(applied, c.managed, c.fate, c.now)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.wake, wake)
		})
	}
}

// Shows: work/triggers
func TestWhatWakesAWork(t *testing.T) {
	before := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Generation: 1, Labels: map[string]string{"a": "1"}, Finalizers: []string{names.FinalizerManifestWork},
	}}
	for name, c := range map[string]struct {
		change func(*workv1.ManifestWork)
		want   bool
	}{
		"its status does not":  {func(w *workv1.ManifestWork) { w.ResourceVersion = "9" }, false},
		"nor an annotation":    {func(w *workv1.ManifestWork) { w.Annotations = map[string]string{"a": "1"} }, false},
		"nor a new finalizer":  {func(w *workv1.ManifestWork) { w.Finalizers = append(w.Finalizers, "x") }, false},
		"its spec does":        {func(w *workv1.ManifestWork) { w.Generation = 2 }, true},
		"a label does":         {func(w *workv1.ManifestWork) { w.Labels = nil }, true},
		"its deletion does":    {func(w *workv1.ManifestWork) { w.DeletionTimestamp = &metav1.Time{Time: epoch} }, true},
		"our finalizer's end":  {func(w *workv1.ManifestWork) { w.Finalizers = nil }, true},
		"its being made again": {func(w *workv1.ManifestWork) { w.UID = "new" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			c.change(after)
			assert.Equal(t, c.want, workChanged(before, after))
		})
	}
	assert.False(t, workChanged(&workv1.ManifestWork{}, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Finalizers: []string{names.FinalizerManifestWork},
	}}), "that our finalizer came is our own doing")
}

func TestWhatWakesByAnAppliedManifestWork(t *testing.T) {
	before := &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{
		Finalizers: []string{names.FinalizerAppliedManifestWork},
	}}
	after := before.DeepCopy()
	after.Status.AppliedResources = []workv1.AppliedManifestResourceMeta{{}}
	assert.False(t, appliedChanged(before, after), "our own list")
	after = before.DeepCopy()
	after.Spec.AgentID = "x"
	assert.True(t, appliedChanged(before, after))
	after = before.DeepCopy()
	after.Finalizers = nil
	assert.True(t, appliedChanged(before, after))
}
