package fleets

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/rollout/planner"
)

// bent returns a planner to which something else is given than there is.
func bent(change func(*planner.Placement)) Planner {
	return func(f planner.Fleet) planner.Plan {
		f.Placements = slices.Clone(f.Placements)
		for n := range f.Placements {
			p := &f.Placements[n]
			p.Strategy = *p.Strategy.DeepCopy()
			p.Clusters = slices.Clone(p.Clusters)
			change(p)
		}
		return planner.Make(f)
	}
}

// broken returns a planner whose results are changed.
func broken(change func(*planner.Result)) Planner {
	return func(f planner.Fleet) planner.Plan {
		plan := planner.Make(f)
		for n := range plan.Placements {
			change(&plan.Placements[n])
		}
		return plan
	}
}

func settle(p *planner.Placement, change func(*clusterv1alpha1.RolloutConfig)) {
	if p.Strategy.Progressive != nil {
		change(&p.Strategy.Progressive.RolloutConfig)
	}
	if p.Strategy.ProgressivePerGroup != nil {
		change(&p.Strategy.ProgressivePerGroup.RolloutConfig)
	}
}

// Shows: invariants/failures-stop, invariants/slots, invariants/groups-in-order, invariants/broken-first
// Shows: invariants/target-stays, invariants/every-cluster-told, invariants/order-free
// Shows: invariants/woken-for-rollout, invariants/rollout-ends
func TestThePropertiesHoldNotForEveryPlanner(t *testing.T) {
	tests := map[string]Planner{
		"tolerates all failures": bent(func(p *planner.Placement) {
			settle(p, func(c *clusterv1alpha1.RolloutConfig) { c.MaxFailures = intstr.FromString("100%") })
		}),
		"tolerates no failure": bent(func(p *planner.Placement) {
			settle(p, func(c *clusterv1alpha1.RolloutConfig) { c.MaxFailures = intstr.FromInt32(0) })
		}),
		"does not let clusters soak": bent(func(p *planner.Placement) {
			settle(p, func(c *clusterv1alpha1.RolloutConfig) { c.MinSuccessTime.Duration = 0 })
		}),
		"knows no deadline": bent(func(p *planner.Placement) {
			settle(p, func(c *clusterv1alpha1.RolloutConfig) { c.ProgressDeadline = "None" })
		}),
		"moves one after the other": bent(func(p *planner.Placement) {
			if p.Strategy.Progressive != nil {
				p.Strategy.Progressive.MaxConcurrency = intstr.FromInt32(1)
			}
		}),
		"moves one too many": bent(func(p *planner.Placement) {
			if s := p.Strategy.Progressive; s != nil && s.MaxConcurrency.Type == intstr.Int && s.MaxConcurrency.IntVal > 0 {
				s.MaxConcurrency.IntVal++
			}
		}),
		"forgets mandatory groups": bent(func(p *planner.Placement) {
			if p.Strategy.Progressive != nil {
				p.Strategy.Progressive.MandatoryDecisionGroups.MandatoryDecisionGroups = nil
			}
		}),
		"takes all groups for one": bent(func(p *planner.Placement) {
			for n := range p.Clusters {
				p.Clusters[n].Group, p.Clusters[n].GroupName = 0, ""
			}
		}),
		"forgets clusters in flight": bent(func(p *planner.Placement) {
			p.Clusters = slices.DeleteFunc(p.Clusters, func(c planner.Cluster) bool { return c.State == planner.InFlight })
		}),
		"takes failed clusters for clusters in flight": bent(func(p *planner.Placement) {
			for n := range p.Clusters {
				if p.Clusters[n].State == planner.Failed {
					p.Clusters[n].State = planner.InFlight
				}
			}
		}),
		"moves clusters that may not": bent(func(p *planner.Placement) {
			for n := range p.Clusters {
				p.Clusters[n].Held = ""
			}
		}),
		"lets groups overtake those that wait for a window": bent(func(p *planner.Placement) {
			for n := range p.Clusters {
				p.Clusters[n].Gated = false
			}
		}),
		"lets groups overtake those that wait for another add-on": bent(func(p *planner.Placement) {
			for n := range p.Clusters {
				p.Clusters[n].Depends = false
			}
		}),
		"forgets clusters whose add-on is not installed yet": func(f planner.Fleet) planner.Plan {
			isAwaited := func(c planner.Cluster) bool { return c.State == planner.Awaited }
			plan := bent(func(p *planner.Placement) { p.Clusters = slices.DeleteFunc(p.Clusters, isAwaited) })(f)
			for n, p := range f.Placements {
				for _, c := range p.Clusters {
					if isAwaited(c) {
						plan.Placements[n].Counts.Configured++
					}
				}
			}
			return plan
		},
		"brings a fix by name, not to the broken clusters": bent(func(p *planner.Placement) {
			for n := range p.Clusters {
				p.Clusters[n].Broken = false
			}
		}),
		"moves placements that may not": bent(func(p *planner.Placement) { p.Held = "" }),
		"waits for ever": broken(func(r *planner.Result) {
			for _, name := range r.New {
				r.Hold = append(r.Hold, planner.Wait{Name: name, Why: "waits"})
			}
			slices.SortFunc(r.Hold, func(a, b planner.Wait) int { return strings.Compare(a.Name, b.Name) })
			r.Admit = slices.DeleteFunc(r.Admit, func(name string) bool { return slices.Contains(r.New, name) })
			r.Counts.Progressing -= len(r.New)
			r.New = nil
		}),
		"loses a cluster":          broken(func(r *planner.Result) { r.Admit = r.Admit[:max(0, len(r.Admit)-1)] }),
		"counts wrong":             broken(func(r *planner.Result) { r.Counts.Done++ }),
		"says nothing of failures": broken(func(r *planner.Result) { r.Stopped = "" }),
		"says nothing of problems": broken(func(r *planner.Result) { r.Problem = "" }),
		"never wakes": func(f planner.Fleet) planner.Plan {
			plan := planner.Make(f)
			plan.Wake = time.Time{}
			return plan
		},
		"wakes too late": func(f planner.Fleet) planner.Plan {
			plan := planner.Make(f)
			if !plan.Wake.IsZero() {
				plan.Wake = plan.Wake.Add(1)
			}
			return plan
		},
		"wakes too early": func(f planner.Fleet) planner.Plan {
			plan := planner.Make(f)
			if !plan.Wake.IsZero() {
				plan.Wake = plan.Wake.Add(-1)
			}
			return plan
		},
		"goes by the order of the input": func(f planner.Fleet) planner.Plan {
			plan := planner.Make(f)
			for n, p := range f.Placements {
				if len(p.Clusters) > 1 {
					plan.Placements[n].Remarks = []string{p.Clusters[0].Name}
				}
			}
			return plan
		},
		"decides for too few placements": func(f planner.Fleet) planner.Plan {
			plan := planner.Make(f)
			plan.Placements = plan.Placements[1:]
			return plan
		},
	}
	for name, decide := range tests {
		t.Run(name, func(t *testing.T) {
			tally := Run(t.Context(), Rollout(decide), Options{Seed: 1, Games: 500, Workers: 1})
			assert.Positive(t, tally.Violated)
		})
	}
}

func TestAGameIsTheSameAgain(t *testing.T) {
	bad := Rollout(broken(func(r *planner.Result) { r.Stopped = "" }))
	all := Run(t.Context(), bad, Options{Seed: 7, Games: 200, Workers: 3})
	require.NotEmpty(t, all.Violations)
	assert.Equal(t, 200, all.Games)
	var alone int
	for n := range 200 {
		tally := Run(t.Context(), bad, Options{Seed: 7, First: n, Games: 1})
		require.Equal(t, 1, tally.Games)
		alone += tally.Violated
		for _, violation := range tally.Violations {
			if len(all.Violations) < maxViolations {
				assert.Contains(t, all.Violations, violation)
			}
		}
	}
	assert.Equal(t, all.Violated, alone)
}

func TestTheTable(t *testing.T) {
	var out strings.Builder
	tallies := []Tally{
		{Name: "rollout", Games: 2, Steps: 30, Decisions: 50, Took: 2 * time.Second},
		{Name: "install", Games: 1, Steps: 5, Decisions: 5, Took: time.Second, Violated: 1, Violations: []string{"seed 3, game 0, step 1: lost"}},
	}
	require.NoError(t, Print(&out, 3, tallies))
	assert.Equal(t, `seed 3   fleets  steps  decisions  decisions/s  violations
rollout  2       30     50         25           0
install  1       5      5          5            1
install: seed 3, game 0, step 1: lost
`, out.String())
	assert.True(t, Violated(tallies))
	assert.False(t, Violated(tallies[:1]))
}
