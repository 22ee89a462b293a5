package join_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/csr"
)

// chooser is a member that chooses among two hubs: the first, over the given way, and the brief one.
func chooser(t *testing.T, prefix string, first way) *member {
	t.Helper()
	m := newMember(t, prefix)
	m.config.Gates.MultipleHubs = true
	m.config.BootstrapKubeconfigs = []string{"secret:hub1", m.write("hub2", way{hub: shared.brief}.kubeconfig(t))}
	m.bootstrapSecret(first.kubeconfig(t), "hub1")
	return m
}

// Row: spokeagent_switch_hub_test.go:106
func TestAClusterThatIsDeniedGoesToTheNextHub(t *testing.T) {
	m := chooser(t, "denied", way{hub: shared.hub})
	m.start()
	m.admit(shared.hub)
	assert.Nil(t, m.cluster(shared.brief), "the second hub is for when the first is not there")
	m.accept(shared.hub, false)
	m.admit(shared.brief)
	server, err := csr.ParseHubServer(m.secret().Data[csr.KeyKubeconfig])
	require.NoError(t, err)
	assert.Equal(t, shared.brief.plane.Host, server.Server)

	// It stays where it is when the first hub wants it again, and after a restart.
	m.accept(shared.hub, true)
	m.restart()
	m.awaitJoined(shared.brief)
}

func TestAHubThatHasNotAcceptedTheClusterIsLeftAtAStartForOneThatMay(t *testing.T) {
	m := chooser(t, "undecided", way{hub: shared.hub})
	m.start()
	m.eventually(func() bool { return m.cluster(shared.hub) != nil && len(m.requests(shared.hub)) == 1 },
		"a request at the first hub")
	m.restart()
	m.eventually(func() bool { return m.cluster(shared.brief) != nil && len(m.requests(shared.brief)) == 1 },
		"a request at the second hub")
	// Now that neither has accepted it, the first one is waited for again, and stays the choice when the certificate comes
	// before the acceptance.
	m.restart()
	m.eventually(func() bool { return len(m.requests(shared.hub)) == 2 }, "a request at the first hub again")
	m.admit(shared.hub)
	assert.Len(t, m.requests(shared.brief), 1)
}

// Row: spokeagent_switch_hub_test.go:129
func TestAHubThatIsDeadForTooLongIsLeft(t *testing.T) {
	l := link(t, shared.hub)
	m := chooser(t, "dead", way{hub: shared.hub, server: l.Host})
	m.config.HubTimeout = 4 * time.Second
	m.start()
	m.admit(shared.hub)
	l.Cut()
	m.admit(shared.brief)
	assert.Positive(t, m.log.count("is silent since"))
}

func TestNoHubThatCanBeJoinedIsToldAndLookedForAgain(t *testing.T) {
	m := chooser(t, "none", way{hub: shared.hub, token: "nobody"})
	m.write("hub2", way{hub: shared.brief, token: "nobody"}.kubeconfig(t))
	m.start()
	m.awaitState("no hub can be joined: hub " + shared.hub.plane.Host)
	assert.Nil(t, m.cluster(shared.hub))
	m.bootstrapSecret(way{hub: shared.hub}.kubeconfig(t), "hub1")
	m.admit(shared.hub)

	// The bootstrap credentials expire, the stored one goes on.
	m.bootstrapSecret(way{hub: shared.hub, token: "expired"}.kubeconfig(t), "hub1")
	m.restart()
	m.awaitJoined(shared.hub)
}
