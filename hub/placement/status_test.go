package placement

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

func concluded(spec clusterv1beta1.PlacementSpec, failed error) clusterv1beta1.PlacementStatus {
	f := facts{now: noon(), placement: placement(), clusters: everyCluster(), bindings: bound(setGlobal)}
	f.placement.Spec = spec
	status := clusterv1beta1.PlacementStatus{NumberOfSelectedClusters: 42}
	conclude(f, decided(f), failed == nil, &status)
	return status
}

func TestWhatTheStatusSays(t *testing.T) {
	tests := map[string]struct {
		spec   clusterv1beta1.PlacementSpec
		status metav1.ConditionStatus
		reason string
		count  int32
	}{
		"all are scheduled": {status: metav1.ConditionTrue, reason: "AllDecisionsScheduled", count: 3},
		"fewer than wanted": {
			clusterv1beta1.PlacementSpec{NumberOfClusters: new(int32(5))}, metav1.ConditionFalse, "NotAllDecisionsScheduled", 3,
		},
		"none matches": {
			clusterv1beta1.PlacementSpec{Predicates: []clusterv1beta1.ClusterPredicate{{
				RequiredClusterSelector: labelled(by("env", "In", "nowhere")),
			}}}, metav1.ConditionFalse, "NoManagedClusterMatched", 0,
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			status := concluded(tc.spec, nil)
			c := meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
			require.NotNil(t, c)
			assert.Equal(t, tc.status, c.Status)
			assert.Equal(t, tc.reason, c.Reason)
			assert.Equal(t, int64(7), c.ObservedGeneration)
			assert.Equal(t, tc.count, status.NumberOfSelectedClusters)
			assert.Equal(t, []clusterv1beta1.DecisionGroupStatus{{
				Decisions: []string{"p-decision-1"}, ClustersCount: tc.count,
			}}, status.DecisionGroups)
			c = meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionMisconfigured)
			assert.Equal(t, "Succeedconfigured", c.Reason)
			assert.Equal(t, metav1.ConditionFalse, c.Status)
			c = meta.FindStatusCondition(status.Conditions, names.ConditionDecided)
			require.NotNil(t, c)
			assert.Equal(t, int64(7), c.ObservedGeneration)
			assert.Contains(t, c.Message, fmt.Sprintf("%d clusters on 1 pages", tc.count))
		})
	}
}

func TestPagesThatWereNotWrittenAreNotTold(t *testing.T) {
	status := concluded(clusterv1beta1.PlacementSpec{}, errors.New("down"))
	assert.Equal(t, int32(42), status.NumberOfSelectedClusters)
	assert.Nil(t, meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionSatisfied))
	assert.Nil(t, meta.FindStatusCondition(status.Conditions, names.ConditionDecided))
}

func TestAMisconfiguredPlacementKeepsWhatItTold(t *testing.T) {
	status := concluded(clusterv1beta1.PlacementSpec{SortBy: "Score"}, nil)
	c := meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionMisconfigured)
	require.NotNil(t, c)
	assert.Equal(t, metav1.ConditionTrue, c.Status)
	assert.Equal(t, "Misconfigured", c.Reason)
	assert.Equal(t, int32(42), status.NumberOfSelectedClusters)
}
