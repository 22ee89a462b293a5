package numbers

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheNumbersOfAFleetAreMetrics(t *testing.T) {
	c := collector{descriptions: describe(), read: func() (fleet, error) { return count(broken()), nil }}
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP spokelet_fleet_addons Add-ons on clusters by the code of what is wrong with them first; code well for nothing.
# TYPE spokelet_fleet_addons gauge
spokelet_fleet_addons{addon="(undefined)",code="SPK058"} 1
spokelet_fleet_addons{addon="logs",code="SPK052"} 1
spokelet_fleet_addons{addon="logs",code="well"} 2
spokelet_fleet_addons{addon="metrics",code="SPK057"} 1
# HELP spokelet_fleet_certificate_ends_timestamp_seconds When the first certificate of a kind ends, as agents report it.
# TYPE spokelet_fleet_certificate_ends_timestamp_seconds gauge
spokelet_fleet_certificate_ends_timestamp_seconds{kind="addon"} 1.7962128e+09
spokelet_fleet_certificate_ends_timestamp_seconds{kind="agent"} 1.7961264e+09
# HELP spokelet_fleet_certificates_late Certificates that should have been replaced.
# TYPE spokelet_fleet_certificates_late gauge
spokelet_fleet_certificates_late{kind="addon"} 0
spokelet_fleet_certificates_late{kind="agent"} 1
# HELP spokelet_fleet_clusters Clusters by the code of what is wrong with them first; code well for nothing.
# TYPE spokelet_fleet_clusters gauge
spokelet_fleet_clusters{code="SPK020"} 1
spokelet_fleet_clusters{code="SPK031"} 1
spokelet_fleet_clusters{code="well"} 2
# HELP spokelet_fleet_paused 1 for an add-on whose AddOnPolicy is paused, and 0 for others.
# TYPE spokelet_fleet_paused gauge
spokelet_fleet_paused{addon="logs"} 0
spokelet_fleet_paused{addon="metrics"} 1
# HELP spokelet_fleet_removals_held Clusters from which an add-on is not removed until a person confirms it, because many lost it at once without an edit that explains it.
# TYPE spokelet_fleet_removals_held gauge
spokelet_fleet_removals_held{addon="logs"} 0
spokelet_fleet_removals_held{addon="metrics"} 3
# HELP spokelet_fleet_rollouts Add-ons on clusters by how far they are with their configuration.
# TYPE spokelet_fleet_rollouts gauge
spokelet_fleet_rollouts{addon="(undefined)",state="waiting"} 1
spokelet_fleet_rollouts{addon="logs",state="complete"} 2
spokelet_fleet_rollouts{addon="logs",state="waiting"} 1
# HELP spokelet_fleet_rollouts_stopped Placements of an add-on whose rollout does not go on, because more clusters failed than it tolerates.
# TYPE spokelet_fleet_rollouts_stopped gauge
spokelet_fleet_rollouts_stopped{addon="logs"} 1
spokelet_fleet_rollouts_stopped{addon="metrics"} 0
`), "spokelet_fleet_addons", "spokelet_fleet_clusters", "spokelet_fleet_rollouts",
		"spokelet_fleet_rollouts_stopped", "spokelet_fleet_removals_held", "spokelet_fleet_paused", "spokelet_fleet_certificates_late",
		"spokelet_fleet_certificate_ends_timestamp_seconds"))
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	assert.Empty(t, problems, "names and helps follow the conventions of Prometheus")
}

func TestAFleetThatCannotBeReadLeavesTheOtherMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	var said error
	c := collector{
		descriptions: describe(), read: func() (fleet, error) { return fleet{}, errors.New("no cache") },
		failed: func(err error) { said = err },
	}
	require.NoError(t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(t, err)
	assert.Empty(t, families)
	require.EqualError(t, said, "no cache")
}

func TestOnlyWhoLeadsHasNumbers(t *testing.T) {
	n := &Numbers{Registry: prometheus.NewPedanticRegistry()}
	assert.True(t, n.NeedLeaderElection())
	ctx, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, n.Start(ctx))
	registry, is := n.Registry.(*prometheus.Registry)
	require.True(t, is)
	families, err := registry.Gather()
	require.NoError(t, err)
	assert.Empty(t, families, "who does not lead any more has none")
	require.NoError(t, (&Numbers{}).Start(t.Context()), "without a registry there is nothing to do")
}
