package work_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// TestAStatusOfGiantMessagesIsTaken has manifests whose refusals are as long as a message may be and together longer
// than an object may be: the hub takes the status, and each manifest has its share.
// It has the machine for itself: an API server refuses a hundred large objects for it.
//
// Shows: work/status-fits
func TestAStatusOfGiantMessagesIsTaken(t *testing.T) {
	e := newEnv(t)
	a := e.start()
	const bad, keys = 100, 250 // the API server tells of each key in about 200 bytes
	data := map[string]string{}
	for i := range keys {
		data[fmt.Sprintf("<%d>", i)] = ""
	}
	manifests := []any{e.configMap("fine", nil)}
	for i := range bad {
		manifests = append(manifests, e.configMap(fmt.Sprintf("bad-%d", i), data))
	}
	w := e.work("w", manifests...)
	e.create(w)
	applied := e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	assert.Regexp(t, `^Failed to apply manifest work: 100 of 101 manifests failed to apply: manifest 1 \(ConfigMap `+e.cluster+
		`/bad-0\): Failed to apply manifest: creating .*is invalid`, applied.Message)
	available := e.is(w, workv1.WorkAvailable, metav1.ConditionFalse)
	assert.Regexp(t, `^100 of 101 resources are not available: manifest 1 \(ConfigMap `, available.Message)
	assert.Equal(t, "Apply manifest complete", manifestCondition(w, 0, workv1.ManifestApplied).Message)
	const least = 1000
	for i := range bad {
		assert.Greater(t, len(manifestCondition(w, 1+i, workv1.ManifestApplied).Message), least)
	}
	e.quiet(a)

	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = w.Spec.Workload.Manifests[:1] })
	e.settled(w)
}
