package facts_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/facts"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/simulated"
)

// reader returns a reader of a hub.
func reader(t *testing.T, hub *simulated.Hub) *fleet.Reader {
	t.Helper()
	server := httptest.NewServer(hub)
	t.Cleanup(server.Close)
	source, err := fleet.NewHub(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	return &fleet.Reader{Source: source}
}

// The page says of each add-on on each cluster what "why" says, also where rights are missing.
func TestASnapshotSaysWhatIsReadForOneAddOn(t *testing.T) {
	for _, denied := range [][]string{nil, {"placements"}, {"placementdecisions"}, {"clustermanagementaddons"}, {"manifestworks"}} {
		hub, err := simulated.Shop(1)
		require.NoError(t, err)
		hub.Deny(denied...)
		r := reader(t, hub)
		s, err := facts.Take(t.Context(), r, simulated.Noon())
		require.NoError(t, err)
		for _, cluster := range []string{"canary-1", "store-001", "store-006", "store-018", "store-040", "store-114", "store-201", "none"} {
			for _, name := range []string{"logs", "metrics", "policy", "proxy", "none"} {
				alone := reader(t, hub)
				want, err := facts.AddOn(t.Context(), alone, cluster, name)
				require.NoError(t, err)
				got, err := s.AddOn(t.Context(), s.Reader(), cluster, name)
				require.NoError(t, err)
				want.Now = simulated.Noon()
				assert.Equal(t, report.AddOnChain(cluster, name, want), report.AddOnChain(cluster, name, got),
					"%s on %s without %v", name, cluster, denied)
			}
		}
	}
}

func TestASnapshotHasTheObjectsByTheirNames(t *testing.T) {
	hub, err := simulated.Shop(1)
	require.NoError(t, err)
	s, err := facts.Take(t.Context(), reader(t, hub), simulated.Noon())
	require.NoError(t, err)
	assert.Len(t, s.OfName("logs"), 45)
	assert.Len(t, s.On("store-001"), 4)
	for _, name := range []string{"logs", "metrics", "policy", "proxy"} {
		for _, a := range s.OfName(name) {
			require.Equal(t, name, a.Metadata.Name)
		}
		assert.NotNil(t, s.Definition(name))
	}
	assert.NotNil(t, s.ProblemOf("store-001", "logs"))
	assert.Nil(t, s.ProblemOf("store-001", "policy"))
	assert.Len(t, s.ProblemsOn("store-001"), 1)
	assert.Nil(t, s.Cluster("none"))
	_, known := s.Rollout("logs")
	assert.True(t, known)
	hub.Silence(true)
	_, err = facts.Take(t.Context(), reader(t, hub), simulated.Noon())
	require.ErrorIs(t, err, fleet.ErrUnreachable)
}
