package join_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
)

// chooser is a member that chooses among two hubs: the first, over the given way, and the brief one.
func chooser(t *testing.T, prefix string, first way) *member {
	t.Helper()
	m := newMember(t, prefix)
	m.config.Gates.MultipleHubs = true
	m.config.BootstrapKubeconfigs = []string{"secret:hub1", m.write("hub2", way{hub: brief}.kubeconfig(t))}
	m.bootstrapSecret(first.kubeconfig(t), "hub1")
	return m
}

// Shows: registration/denied-goes-on
func TestAClusterThatIsDeniedGoesToTheNextHub(t *testing.T) {
	m := chooser(t, "denied", way{hub: first})
	m.start()
	m.admit(first)
	assert.Nil(t, m.cluster(brief), "the second hub is for when the first is not there")
	m.accept(first, false)
	m.admit(brief)
	server, err := issue.ParseHubServer(m.secret().Data[csr.KeyKubeconfig])
	require.NoError(t, err)
	assert.Equal(t, brief.Host, server.Server)

	// It stays where it is when the first hub wants it again, and after a restart.
	m.accept(first, true)
	m.restart()
	m.awaitJoined(brief)
}

func TestAHubThatHasNotAcceptedTheClusterIsLeftAtAStartForOneThatMay(t *testing.T) {
	m := chooser(t, "undecided", way{hub: first})
	m.start()
	m.eventually(func() bool { return m.cluster(first) != nil && len(m.requests(first)) == 1 },
		"a request at the first hub")
	m.restart()
	m.eventually(func() bool { return m.cluster(brief) != nil && len(m.requests(brief)) == 1 },
		"a request at the second hub")
	// Now that neither has accepted it, the first one is waited for again, and stays the choice when the certificate comes
	// before the acceptance.
	m.restart()
	m.eventually(func() bool { return len(m.requests(first)) == 2 }, "a request at the first hub again")
	m.admit(first)
	assert.Len(t, m.requests(brief), 1)
}

// The credential of the first hub expires while that hub is away, so the agent asks the other one, which has not
// accepted the cluster, and answers.
//
// Shows: registration/comes-back
func TestAClusterGoesBackToTheHubThatAcceptedItFromOneThatHasNot(t *testing.T) {
	l := link(t, brief)
	m := newMember(t, "back")
	m.config.Gates.MultipleHubs = true
	m.config.BootstrapKubeconfigs = []string{"secret:hub1", m.write("hub2", way{hub: first}.kubeconfig(t))}
	m.bootstrapSecret(way{hub: brief, server: l.Host}.kubeconfig(t), "hub1")
	m.start()
	m.admit(brief)
	m.stop()
	former := m.certificate()
	m.awaitExpiry(former)
	l.Cut()
	m.start()
	m.eventually(func() bool { return m.cluster(first) != nil && len(m.requests(first)) == 1 },
		"a request at the hub that answers")
	l.Mend()
	m.approve(brief)
	m.awaitNewCertificate(former)
	m.awaitJoined(brief)
}

// Shows: registration/silent-goes-on
func TestAHubThatIsDeadForTooLongIsLeft(t *testing.T) {
	l := link(t, first)
	m := chooser(t, "dead", way{hub: first, server: l.Host})
	m.config.HubTimeout = 4 * time.Second
	m.start()
	m.admit(first)
	l.Cut()
	m.admit(brief)
	assert.Positive(t, m.agent.Log.Count("is silent since"))
}

func TestNoHubThatCanBeJoinedIsToldAndLookedForAgain(t *testing.T) {
	m := chooser(t, "none", way{hub: first, token: "nobody"})
	m.write("hub2", way{hub: brief, token: "nobody"}.kubeconfig(t))
	m.start()
	m.awaitState("no hub can be joined: hub " + first.Host)
	assert.Nil(t, m.cluster(first))
	m.bootstrapSecret(way{hub: first}.kubeconfig(t), "hub1")
	m.admit(first)

	// The bootstrap credentials expire, the stored one goes on.
	m.bootstrapSecret(way{hub: first, token: "expired"}.kubeconfig(t), "hub1")
	m.restart()
	m.awaitJoined(first)
}
