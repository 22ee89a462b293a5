package rollout

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// A later placement, whose decisions have been in doubt for long, gave the cluster what it has.
func TestWhatALaterPlacementGaveIsKeptWhileThatIsInDoubt(t *testing.T) {
	low, high := fixture.Template("t"), fixture.Template("u")
	doubted := selects()
	doubted.Key = types.NamespacedName{Namespace: "ns", Name: "q"}
	doubted.Incomplete = errors.New("placement ns/q is writing its PlacementDecisions")
	doubted.DoubtedSince = fixture.Noon().Add(-2 * fleet.FailoverPeriod)
	f := facts{
		now: fixture.Noon(), states: addonconfig.States{low: {Hash: "l"}, high: {Hash: "h"}},
		cma: fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.Progressive,
		}, fixture.Placement("p", low)), fixture.Placement("q", high)),
		placements: []*fleet.Decisions{selects("a", "b"), doubted},
		members: membersOf([]*addonv1beta1.ManagedClusterAddOn{
			fixture.AddOn("a", fixture.Has(high, "h")), fixture.AddOn("b", fixture.Has(low, "old")),
		}...),
	}
	p := decide(f)
	assert.False(t, p.admissions["a"].granted)
	assert.Contains(t, p.admissions["a"].reason, "keeps what it has: ")
	assert.True(t, p.admissions["b"].granted, "which the later one gave nothing")
}
