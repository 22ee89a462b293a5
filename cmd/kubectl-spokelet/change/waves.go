package change

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/rollout/planner"
)

// Rollout is how a change moves over the clusters of one Placement if every cluster succeeds at once.
type Rollout struct {
	// Placement is its namespace and name.
	Placement string `json:"placement"`
	// Waves are how many clusters get the change together, one after the other.
	Waves []int `json:"waves"`
	// Soonest is how long it takes at least, with the time that each wave has to be well; in seconds in JSON.
	Soonest time.Duration `json:"-"`
	Seconds int64         `json:"soonestSeconds"`
	// Stops is why nothing moves; empty when it does.
	Stops string `json:"stops,omitempty"`
}

// Selected is a cluster that a Placement selects, with its decision group.
type Selected struct {
	Name  string
	Group int
	// GroupName is the name of the group; empty for none.
	GroupName string
}

// Moving is a change on the clusters of a Placement.
type Moving struct {
	// Placement is its namespace and name.
	Placement string
	// Strategy is its rolloutStrategy, and GroupSize clustersPerDecisionGroup of the Placement; zero for none.
	Strategy  clusterv1alpha1.RolloutStrategy
	GroupSize intstr.IntOrString
	// Selected are all clusters of the Placement, and Changed the names of those that change.
	Selected []Selected
	Changed  map[string]bool
}

// Waves plays the rollout of a change, by the planner of the hub manager.
func Waves(m Moving) Rollout {
	r := Rollout{Placement: m.Placement}
	p := planner.Placement{Strategy: m.Strategy, GroupSize: m.GroupSize, Selected: len(m.Selected)}
	for _, s := range m.Selected {
		state := planner.Succeeded
		if m.Changed[s.Name] {
			state = planner.Pending
		}
		p.Clusters = append(p.Clusters, planner.Cluster{Name: s.Name, Group: s.Group, GroupName: s.GroupName, State: state})
	}
	begin := time.Unix(0, 0)
	now := begin
	for range 2 * (len(m.Selected) + 1) { // Each step admits a cluster or ends a soak.
		plan := planner.Make(planner.Fleet{Now: now, Placements: []planner.Placement{p}})
		result := plan.Placements[0]
		r.Stops = result.Problem
		if len(result.New) > 0 {
			r.Waves = append(r.Waves, len(result.New))
			for i := range p.Clusters {
				if p.Clusters[i].State == planner.Pending && result.Admits(p.Clusters[i].Name) {
					p.Clusters[i].State, p.Clusters[i].Since = planner.Succeeded, now
				}
			}
			continue
		}
		if plan.Wake.IsZero() || !plan.Wake.After(now) {
			break
		}
		now = plan.Wake
	}
	r.Soonest = now.Sub(begin)
	r.Seconds = int64(r.Soonest / time.Second)
	return r
}
