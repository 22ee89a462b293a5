package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/names"
)

// decided is a page of decisions of a placement in one group.
func decided(index int, name string, clusters ...string) fleet.Decision {
	var d fleet.Decision
	d.Metadata.Namespace = "add-ons"
	d.Metadata.Labels = map[string]string{
		names.LabelPlacement: "all", names.LabelDecisionGroupIndex: fmt.Sprint(index), names.LabelDecisionGroupName: name,
	}
	for _, cluster := range clusters {
		d.Status.Decisions = append(d.Status.Decisions, struct {
			ClusterName string `json:"clusterName"`
		}{cluster})
	}
	return d
}

func TestTheWavesAreThoseOfTheStrategy(t *testing.T) {
	first := clusterv1alpha1.MandatoryDecisionGroups{
		MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "canary"}},
	}
	second := clusterv1alpha1.MandatoryDecisionGroups{
		MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupIndex: 2}},
	}
	decisions := []fleet.Decision{decided(0, "", "a", "b"), decided(1, "canary", "c"), decided(2, "", "d"), decided(10, "", "e")}
	p := PlacementRollout{Placement: "add-ons/all", Stages: []Stages{
		{Stage: StageFailed, Clusters: []string{"b"}}, {Stage: StageWaiting, Clusters: []string{"a", "e"}},
		{Stage: StageComplete, Clusters: []string{"c", "d"}},
	}}
	type s = clusterv1alpha1.RolloutStrategy
	for sentence, tc := range map[string]struct {
		strategy s
		waves    []string
	}{
		"without a strategy all are one": {s{}, []string{"all clusters: c d b a e"}},
		"of all, too":                    {s{Type: clusterv1alpha1.All}, []string{"all clusters: c d b a e"}},
		"of Progressive all are one": {
			s{Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{}}, []string{"all clusters: c d b a e"},
		},
		"but for the mandatory groups": {
			s{Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{MandatoryDecisionGroups: first}},
			[]string{"mandatory decision group 1 (canary): c", "all other clusters: d b a e"},
		},
		"of groups each is one, by index": {
			s{Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{}},
			[]string{"decision group 0: b a", "decision group 1 (canary): c", "decision group 2: d", "decision group 10: e"},
		},
		"and the mandatory ones come first": {
			s{Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
				MandatoryDecisionGroups: second,
			}},
			[]string{"mandatory decision group 2: d", "decision group 0: b a", "decision group 1 (canary): c", "decision group 10: e"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			ref := &fleet.PlacementRef{Namespace: "add-ons", Name: "all", Strategy: tc.strategy}
			for _, wave := range Waves(p, ref, decisions) {
				text := wave.Name + ":"
				for _, one := range wave.Clusters {
					text += " " + one.Cluster
				}
				got = append(got, text)
			}
			assert.Equal(t, tc.waves, got)
		})
	}
	alone := Waves(p, nil, nil)
	require.Len(t, alone, 1)
	assert.Len(t, alone[0].Clusters, 5)
}

func TestTheCourseOfARolloutBeginsWithIt(t *testing.T) {
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	addOn := func(cluster, kind string, before time.Duration) fleet.AddOn {
		var a fleet.AddOn
		a.Metadata.Namespace = cluster
		a.Status.Conditions = []metav1.Condition{{Type: kind, LastTransitionTime: metav1.NewTime(noon.Add(-before))}}
		return a
	}
	addOns := []fleet.AddOn{
		addOn("moving", "Progressing", time.Minute), addOn("failed", names.ConditionRolloutFailed, 2*time.Minute),
		addOn("complete", "Progressing", time.Hour), addOn("before", "Progressing", 30*time.Hour),
		addOn("waiting", "Progressing", time.Minute), addOn("unknown", "Other", time.Minute), addOn("other", "Progressing", 0),
	}
	p := PlacementRollout{Since: new(noon.Add(-2 * time.Hour)), Reason: "Progressing", Stages: []Stages{
		{Stage: StageFailed, Clusters: []string{"failed"}}, {Stage: StageMoving, Clusters: []string{"moving"}},
		{Stage: StageWaiting, Clusters: []string{"waiting"}}, {Stage: StageComplete, Clusters: []string{"before", "complete", "unknown"}},
	}}
	named := func(all []Reached) (clusters []string) {
		for _, one := range all {
			clusters = append(clusters, one.Cluster)
		}
		return clusters
	}
	assert.Equal(t, []string{"complete", "failed", "moving"}, named(Course(p, addOns)))
	p.Reason = "Completed"
	assert.Equal(t, []string{"complete", "failed", "moving"}, named(Course(p, addOns)), "the last day of one that is complete")
	p.Since = nil
	assert.Len(t, Course(p, addOns[:4]), 3)
	assert.Empty(t, Course(p, nil))
}
