package lies_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/lies"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// TestAFleetIsAsPeopleWantAfterItsAPIServersLied is the short form of "make lies", which plays on.
//
// Shows: invariants/lies-delete-nothing, invariants/lies-approve-nothing, invariants/nothing-taken
// Shows: invariants/selected-stays, invariants/slots, invariants/hook-first, invariants/comes-back, invariants/quiet
func TestAFleetIsAsPeopleWantAfterItsAPIServersLied(t *testing.T) {
	t.Parallel()
	options := lies.Options{Seeds: lies.Short(), Binaries: t.TempDir(), Log: os.Stderr, GoOn: true}
	require.NoError(t, fleet.Build(t.Context(), options.Binaries, map[string]string{
		"spokelet": "./cmd/spokelet", "spokelet-hub": "./cmd/spokelet-hub",
	}))
	outcomes, err := lies.Run(t.Context(), options)
	require.NoError(t, err)
	told := map[string]int{}
	for _, one := range outcomes {
		assert.Empty(t, one.Violations)
		t.Logf("seed %d: calm after %s: %s", one.Seed, one.Calm, one.Scenes)
		for name, count := range one.Lies {
			told[name] += count
		}
	}
	assert.Len(t, outcomes, len(options.Seeds))
	assert.Greater(t, len(told), 8, "%v", told)
}
