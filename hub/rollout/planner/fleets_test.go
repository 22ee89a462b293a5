package planner_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/test/fleets"
)

// Shows: hub/rollout-every-fleet, invariants/failures-stop, invariants/slots, invariants/groups-in-order
// Shows: invariants/broken-first, invariants/target-stays, invariants/every-cluster-told, invariants/order-free
// Shows: invariants/woken-for-rollout, invariants/rollout-ends
func TestEveryRolloutObeysItsStrategyAndEnds(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	tally := fleets.Run(t.Context(), fleets.Rollout(planner.Make), fleets.Options{Seed: seed, Games: 2000, Workers: 2})
	t.Logf("seed %d: %d fleets, %d steps, %d decisions", seed, tally.Games, tally.Steps, tally.Decisions)
	assert.Equal(t, 2000, tally.Games)
	assert.Empty(t, tally.Violations)
}
