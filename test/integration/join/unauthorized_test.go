package join_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/sandbox"
)

// refusedMember is a member of the first hub, which it reaches over a link that may lead to the other hub: that one
// knows neither its certificate nor its bootstrap credential, and answers 401.
func refusedMember(t *testing.T, prefix string) (*member, *sandbox.Link, way) {
	t.Helper()
	l := link(t, first)
	m := newMember(t, prefix)
	m.config.UnauthorizedAfter = 2 * time.Second
	w := way{hub: first, server: l.Host, ca: brief.CA()}
	m.bootstrapSecret(w.kubeconfig(t))
	m.start()
	m.admit(first)
	return m, l, w
}

// Shows: registration/rebuilt-hub
func TestAHubThatWasRebuiltIsJoinedAgain(t *testing.T) {
	m, l, w := refusedMember(t, "rebuilt")
	former := m.certificate()
	require.NoError(t, l.Lead(brief.Host))
	m.awaitState("answers 401 Unauthorized to the bootstrap credential")
	assert.Equal(t, former, m.certificate(), "the stored credential stays until its successor is there")
	assert.Positive(t, m.agent.Log.Count("answers nothing but 401 Unauthorized to the certificate since"))

	w.token = brief.bootstrap.BearerToken
	m.bootstrapSecret(w.kubeconfig(t))
	m.admit(brief)
	assert.NotEqual(t, former, m.certificate())
}

func TestAHubThatTakesTheCertificateAgainIsServedWithIt(t *testing.T) {
	m, l, _ := refusedMember(t, "again")
	former := m.certificate()
	require.NoError(t, l.Lead(brief.Host))
	m.awaitState("answers 401 Unauthorized to the bootstrap credential")
	require.NoError(t, l.Lead(first.Host))
	m.awaitJoined(first)
	assert.Equal(t, former, m.certificate())
}

// The agent restarts while the hub refuses it, so it never gets as far as serving.
func TestAHubThatRefusesFromTheStartIsJoinedAgain(t *testing.T) {
	m, l, w := refusedMember(t, "start")
	former := m.certificate()
	m.stop()
	require.NoError(t, l.Lead(brief.Host))
	w.token = brief.bootstrap.BearerToken
	m.bootstrapSecret(w.kubeconfig(t))
	m.start()
	m.admit(brief)
	assert.NotEqual(t, former, m.certificate())
}

func TestARefusedAgentWithoutABootstrapSecretKeepsAsking(t *testing.T) {
	m, l, _ := refusedMember(t, "keeps")
	former, choices := m.certificate(), m.choices()
	m.deleteBootstrapSecret()
	require.NoError(t, l.Lead(brief.Host))
	m.awaitState("and there is no bootstrap kubeconfig to join again with")
	_, ready := m.state()
	assert.False(t, ready)
	require.NoError(t, l.Lead(first.Host))
	m.awaitServing()
	assert.Equal(t, former, m.certificate())
	assert.Equal(t, choices, m.choices())
}
