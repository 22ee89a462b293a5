package health

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// side is a cluster with an outage since an instant; zero for none.
type side struct{ since time.Time }

func (s side) Since() time.Time    { return s.since }
func (side) Outage() string        { return "" }
func (side) Explains(_ error) bool { return false }

func TestAnOutageIsAMetric(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	s := &State{}
	require.NoError(t, s.Count(registry))
	said := func(text string) {
		t.Helper()
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(text)))
	}
	said("")
	s.Follow(side{})
	s.FollowSpoke(side{since: time.Unix(1_700_000_000, 0)})
	said(`
# HELP spokelet_agent_connected 1 while the other side responds, and 0 in an outage; absent while there is no connection.
# TYPE spokelet_agent_connected gauge
spokelet_agent_connected{to="hub"} 1
spokelet_agent_connected{to="managed-cluster"} 0
# HELP spokelet_agent_outage_start_timestamp_seconds When the outage began; absent outside an outage.
# TYPE spokelet_agent_outage_start_timestamp_seconds gauge
spokelet_agent_outage_start_timestamp_seconds{to="managed-cluster"} 1.7e+09
`)
	s.Follow(nil)
	s.FollowSpoke(side{})
	said(`
# HELP spokelet_agent_connected 1 while the other side responds, and 0 in an outage; absent while there is no connection.
# TYPE spokelet_agent_connected gauge
spokelet_agent_connected{to="managed-cluster"} 1
`)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, (&State{}).Count(nil))
}
