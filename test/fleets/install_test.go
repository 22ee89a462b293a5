package fleets

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

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
	type pages = []*clusterv1beta1.PlacementDecision
	tests := map[string]Decider{
		"trusts every page as the whole decision": func(
			key types.NamespacedName, p *clusterv1beta1.Placement, all pages, _ bool, now time.Time, before *fleet.Decisions,
		) *fleet.Decisions {
			if p != nil {
				p = p.DeepCopy()
				p.Status.Conditions = []metav1.Condition{fleet.Mark(p.Generation, all)}
			}
			return fleet.NewDecisions(key, p, all, true, now, before)
		},
		"takes no time": func(
			key types.NamespacedName, p *clusterv1beta1.Placement, all pages, own bool, now time.Time, _ *fleet.Decisions,
		) *fleet.Decisions {
			return fleet.NewDecisions(key, p, all, own, now.Add(-fleet.FailoverPeriod), nil)
		},
		"never trusts decisions": func(
			key types.NamespacedName, p *clusterv1beta1.Placement, all pages, own bool, now time.Time, _ *fleet.Decisions,
		) *fleet.Decisions {
			return fleet.NewDecisions(key, p, all, own, now.Add(time.Hour), nil)
		},
		"reads one PlacementDecision": func(
			key types.NamespacedName, p *clusterv1beta1.Placement, all pages, own bool, now time.Time, before *fleet.Decisions,
		) *fleet.Decisions {
			return fleet.NewDecisions(key, p, all[:min(1, len(all))], own, now, before)
		},
	}
	for name, decide := range tests {
		t.Run(name, func(t *testing.T) {
			tally := Run(t.Context(), Install(decide), Options{Seed: 1, Games: 500, Workers: 2})
			assert.Positive(t, tally.Violated)
		})
	}
}
