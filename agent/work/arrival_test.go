package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/inventory"
)

// wrote is an entry of managed fields, a number of seconds after the epoch.
func wrote(seconds int, subresource, fields string) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second))
	return metav1.ManagedFieldsEntry{
		Manager: "any", Time: &at, Subresource: subresource, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

func TestTheCacheKeepsWhenASpecWasWritten(t *testing.T) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		wrote(1, "", `{"f:spec":{"f:workload":{}}}`), wrote(5, "", `{"f:spec":{"f:deleteOption":{}}}`),
		wrote(9, "", `{"f:metadata":{"f:finalizers":{}}}`), wrote(12, "status", `{"f:status":{"f:spec":{}}}`),
		{Manager: "of an old server"},
	}}}
	kept, err := Transform(work)
	require.NoError(t, err)
	assert.Same(t, work, kept)
	at := metav1.NewTime(epoch.Add(5 * time.Second))
	assert.Equal(t, []metav1.ManagedFieldsEntry{{Time: &at}}, work.ManagedFields)
	_, err = Transform(work)
	require.NoError(t, err)
	assert.Equal(t, []metav1.ManagedFieldsEntry{{Time: &at}}, work.ManagedFields, "what was trimmed stays")

	applied := &workv1.AppliedManifestWork{ObjectMeta: work.ObjectMeta}
	_, err = Transform(applied)
	require.NoError(t, err)
	assert.Empty(t, applied.ManagedFields)
}

func TestAContentIsTimedOnce(t *testing.T) {
	applied := func(is metav1.ConditionStatus, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: workv1.WorkApplied, Status: is, ObservedGeneration: generation}}
	}
	work := func(generation int64, said []metav1.Condition) *workv1.ManifestWork {
		return &workv1.ManifestWork{
			ObjectMeta: metav1.ObjectMeta{
				UID: "u", Generation: generation, ManagedFields: lastWrite([]metav1.ManagedFieldsEntry{wrote(10, "", "{\"f:spec\":{}}")}),
			},
			Status: workv1.ManifestWorkStatus{Conditions: said},
		}
	}
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

	known, took, is := timed{}.arrival(work(3, applied("True", 2)), applied("True", 3), at(14))
	assert.True(t, is)
	assert.Equal(t, 4*time.Second, took)
	_, _, is = known.arrival(work(3, applied("True", 2)), applied("True", 3), at(20))
	assert.False(t, is, "the hub does not have the status yet, and it was told")
	_, _, is = known.arrival(work(4, applied("True", 3)), applied("True", 4), at(20))
	assert.True(t, is, "the next content counts")

	known, _, is = timed{}.arrival(work(1, nil), applied("False", 1), at(14))
	assert.False(t, is, "it could not be applied")
	known, took, is = known.arrival(work(1, applied("False", 1)), applied("True", 1), at(100))
	assert.True(t, is, "now it could")
	assert.Equal(t, 90*time.Second, took)
	known, _, _ = known.arrival(work(1, applied("True", 1)), applied("False", 1), at(200))
	_, _, is = known.arrival(work(1, applied("False", 1)), applied("True", 1), at(300))
	assert.False(t, is, "what breaks later and is repaired is no arrival")

	for sentence, first := range map[string]*workv1.ManifestWork{
		"an earlier process may have applied it": work(3, applied("False", 3)),
		"it is not known when it was written":    {ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: 3}},
	} {
		_, _, is = timed{}.arrival(first, applied("True", 3), at(14))
		assert.False(t, is, sentence)
	}
	_, took, is = timed{}.arrival(work(1, nil), applied("True", 1), at(3))
	assert.True(t, is)
	assert.Zero(t, took, "the clock of the hub may be ahead")
}

func TestWorksWithoutTheirWorkAreCounted(t *testing.T) {
	start := metav1.NewTime(epoch)
	marked := func(annotations map[string]string, since *metav1.Time) workv1.AppliedManifestWork {
		return workv1.AppliedManifestWork{
			ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
			Status:     workv1.AppliedManifestWorkStatus{EvictionStartTime: since},
		}
	}
	held := map[string]string{inventory.AnnotationHeld: "2026-11-30T00:00:00Z"}
	gone := marked(nil, &start)
	gone.DeletionTimestamp = &start
	assert.Equal(t, map[string]int{"waiting": 1, "held": 2, "older": 1}, countUnowned([]workv1.AppliedManifestWork{
		marked(nil, nil), marked(nil, &start), marked(held, nil), marked(held, &start), gone,
		marked(map[string]string{inventory.AnnotationOlder: "2026-11-30T00:00:00Z"}, nil),
	}))
	assert.Equal(t, map[string]int{"waiting": 0, "held": 0, "older": 0}, countUnowned(nil), "an alert needs a zero")
}
