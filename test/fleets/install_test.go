package fleets

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/hub/fleet"
)

// Shows: hub/torn-decisions, hub/replaced-placement, invariants/selected-stays, invariants/deselected-goes
// Shows: invariants/woken-for-removal
func TestDecisionsThatAreTornUninstallNobody(t *testing.T) {
	tally := Run(t.Context(), Install(fleet.NewDecisions), Options{Seed: 1, Games: 1500, Workers: 2})
	assert.Equal(t, 1500, tally.Games)
	assert.Empty(t, tally.Violations)
}

// Shows: invariants/selected-stays, invariants/deselected-goes, invariants/woken-for-removal
func TestThePropertyOfInstallationHoldsNotForEveryDecision(t *testing.T) {
	tests := map[string]Decider{
		"trusts every page as the whole decision": func(seen fleet.Seen, now time.Time) *fleet.Decisions {
			if p := seen.Placement; p != nil {
				seen.Placement = p.DeepCopy()
				seen.Placement.Status.Conditions = []metav1.Condition{fleet.Mark(p.Generation, seen.Pages)}
			}
			seen.Own = true
			return fleet.NewDecisions(seen, now)
		},
		"takes no time": func(seen fleet.Seen, now time.Time) *fleet.Decisions {
			seen.Before = nil
			return fleet.NewDecisions(seen, now.Add(-fleet.FailoverPeriod))
		},
		"never trusts decisions": func(seen fleet.Seen, now time.Time) *fleet.Decisions {
			seen.Before = nil
			return fleet.NewDecisions(seen, now.Add(time.Hour))
		},
		"reads one PlacementDecision": func(seen fleet.Seen, now time.Time) *fleet.Decisions {
			seen.Pages = seen.Pages[:min(1, len(seen.Pages))]
			return fleet.NewDecisions(seen, now)
		},
	}
	for name, decide := range tests {
		t.Run(name, func(t *testing.T) {
			tally := Run(t.Context(), Install(decide), Options{Seed: 1, Games: 500, Workers: 2})
			assert.Positive(t, tally.Violated)
		})
	}
}
