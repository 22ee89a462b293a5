package planner

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

// Shows: hub/rollout-incomplete
func TestClustersThatLeaveCountForNoShareAndCompleteNothing(t *testing.T) {
	made := func(at string, clusters ...Cluster) Result {
		return Make(Fleet{Now: time.Unix(0, 0), Placements: []Placement{{
			Strategy: clusterv1alpha1.RolloutStrategy{
				Type: clusterv1alpha1.Progressive,
				Progressive: &clusterv1alpha1.RolloutProgressive{
					RolloutConfig:  clusterv1alpha1.RolloutConfig{MaxFailures: intstr.FromInt32(1)},
					MaxConcurrency: intstr.FromString(at),
				},
			},
			Clusters: clusters,
		}}}).Placements[0]
	}
	var many []Cluster
	for i := range 40 {
		c := Cluster{Name: fmt.Sprintf("c%02d", i), Leaving: i >= 10}
		if c.Leaving {
			c.Held = "it leaves"
		}
		many = append(many, c)
	}
	assert.Equal(t, []string{"c00"}, made("10%", many...).New, "a tenth of the ten that are selected")

	done := Cluster{Name: "a", State: Succeeded}
	for sentence, tc := range map[string]struct {
		leaves   State
		complete bool
	}{
		"it is done":         {Succeeded, true},
		"it failed":          {Failed, false},
		"it is on its way":   {InFlight, false},
		"it waits":           {Pending, false},
		"it has none at all": {Awaited, false},
	} {
		counts := made("1", done, Cluster{Name: "b", State: tc.leaves, Held: "it leaves", Leaving: true}).Counts
		assert.Equal(t, tc.complete, counts.Complete(), sentence)
		assert.Equal(t, 1, counts.Configured, sentence)
	}
}
