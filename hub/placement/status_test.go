package placement

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

func concluded(spec clusterv1beta1.PlacementSpec, failed error) clusterv1beta1.PlacementStatus {
	f := facts{now: noon(), placement: placement(), clusters: everyCluster(), bindings: bound(setGlobal)}
	f.placement.Spec = spec
	f.placement.Status.NumberOfSelectedClusters = 42
	return conclude(f, decided(f), true, failed)
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

// TestARefusalIsSaid: what the API server refuses it refuses again, so the author is told. Anything else passes.
// Shows: hub/refused-decisions
func TestARefusalIsSaid(t *testing.T) {
	decisions := schema.GroupResource{Resource: "placementdecisions"}
	quota := fmt.Errorf("creating PlacementDecision a/p-decision-1: %w", apierrors.NewForbidden(decisions, "p-decision-1", errors.New("exceeded quota")))
	invalid := fmt.Errorf("creating: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "PlacementDecision"}, "p", nil))
	busy := fmt.Errorf("creating: %w", apierrors.NewTooManyRequestsError("busy"))
	for sentence, c := range map[string]struct {
		failed error
		says   string
	}{
		"a quota":                       {quota, "not all decisions are written; the first: creating PlacementDecision a/p-decision-1: placementdecisions \"p-decision-1\" is forbidden: exceeded quota"},
		"what cannot be":                {invalid, "the first: creating: PlacementDecision \"p\" is invalid"},
		"a quota, behind a busy server": {errors.Join(busy, errors.Join(quota, invalid)), "exceeded quota"},
		"a webhook":                     {apierrors.NewBadRequest("admission webhook denied the request"), "the first: admission webhook denied"},
		"a busy server":                 {errors.Join(busy, busy), ""},
		"a conflict":                    {apierrors.NewConflict(decisions, "p", errors.New("another version")), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			status := concluded(clusterv1beta1.PlacementSpec{}, c.failed)
			assert.Equal(t, int32(42), status.NumberOfSelectedClusters, "the selection that is published stays")
			assert.Nil(t, meta.FindStatusCondition(status.Conditions, names.ConditionDecided))
			said := meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
			if c.says == "" {
				assert.Nil(t, said)
				return
			}
			require.NotNil(t, said)
			assert.Equal(t, []any{metav1.ConditionFalse, "DecisionsRefused"}, []any{said.Status, said.Reason})
			assert.Contains(t, said.Message, c.says)
		})
	}
}

// TestANameThatIsNoLabelIsMisconfigured: PlacementDecisions have the names of Placement and decision group as labels.
// Each would be refused, by ten thousands of requests.
// Shows: hub/name-bounded
func TestANameThatIsNoLabelIsMisconfigured(t *testing.T) {
	f := facts{now: noon(), placement: placement(), clusters: everyCluster(), bindings: bound(setGlobal)}
	f.placement.Name = strings.Repeat("p", 63)
	require.NoError(t, decided(f).misconfigured)
	f.placement.Name += "p"
	require.EqualError(t, decided(f).misconfigured, "metadata.name has 64 characters, and PlacementDecisions have it as a label "+
		"of at most 63; create a Placement with a shorter name")
	f.placement.Name = "p"
	f.placement.Spec.DecisionStrategy.GroupStrategy.DecisionGroups = []clusterv1beta1.DecisionGroup{{GroupName: "a b"}}
	require.ErrorContains(t, decided(f).misconfigured,
		"spec.decisionStrategy.groupStrategy.decisionGroups[0].groupName cannot be a label of PlacementDecisions: a valid label")
}
