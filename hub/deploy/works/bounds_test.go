package works

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/intern"
)

// TestAFullStatusOfAWorkIsKeptInPart trims what an agent can report about one work.
// Shows: security/full-works
func TestAFullStatusOfAWorkIsKeptInPart(t *testing.T) {
	long := strings.Repeat("x", 30_000)
	failed := []metav1.Condition{{Type: workv1.WorkApplied, Status: metav1.ConditionFalse, Reason: "F", Message: long}}
	entry := func(n int) workv1.ManifestCondition {
		return workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{Ordinal: int32(n), Kind: "ConfigMap", Name: fmt.Sprint("n", n)},
			Conditions:   []metav1.Condition{{Type: workv1.ManifestApplied, Status: metav1.ConditionFalse, Message: long}},
			StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{
				{Name: "text", Value: workv1.FieldValue{Type: workv1.String, String: ptr.To(long)}},
				{Name: "ready", Value: workv1.FieldValue{Type: workv1.Integer, Integer: ptr.To(int64(1))}},
			}},
		}
	}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	work.Status.Conditions = failed
	for n := range maxEntries + 100 {
		work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, entry(n))
	}
	work.Status.ResourceStatus.Manifests[0].ResourceMeta.Name = long
	var shared intern.Table
	for range 2 { // a cache may trim an object twice
		_, err := Trim(&shared)(work)
		require.NoError(t, err)
	}
	bytes, ready := 0, 0
	for _, m := range work.Status.ResourceStatus.Manifests {
		assert.Equal(t, metav1.ConditionFalse, m.Conditions[0].Status, "what failed is known")
		assert.LessOrEqual(t, len(m.ResourceMeta.Name), maxObjectName)
		bytes += len(m.Conditions[0].Message)
		for _, v := range m.StatusFeedbacks.Values {
			if v.Value.String != nil {
				bytes += len(*v.Value.String)
				continue
			}
			ready++
		}
	}
	assert.Len(t, work.Status.ResourceStatus.Manifests, maxEntries)
	assert.LessOrEqual(t, bytes, maxReported)
	assert.Positive(t, ready, "what is short is kept")
	assert.Equal(t, long, work.Status.Conditions[0].Message)
}
