package join_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
)

// Shows: registration/rotation-without-person
func TestACertificateOfSecondsIsRenewedWithoutAPerson(t *testing.T) {
	m := newMember(t, "rotates")
	m.bootstrapSecret(way{hub: brief}.kubeconfig(t))
	m.start()
	m.admit(brief)
	first, choices := m.certificate(), m.choices()
	m.awaitNewCertificate(first)
	requests := m.requests(brief)
	require.GreaterOrEqual(t, len(requests), 2) // and one more where this took as long as a certificate lives
	m.eventually(func() bool { return len(m.undecided(brief)) == 0 }, "a renewal is approved by the hub manager")
	for _, request := range requests {
		m.eventually(func() bool { return len(m.signed(brief, request.Name)) > 0 }, "request %s has its certificate", request.Name)
	}
	m.awaitNewCertificate(m.certificate())
	assert.Equal(t, choices, m.choices(), "the serving phase goes on")
	_, ready := m.state()
	assert.True(t, ready)
}

// Shows: registration/restart-does-not-join-again
func TestAnAgentThatRestartsWithItsCredentialDoesNotJoinAgain(t *testing.T) {
	m := newMember(t, "restarts")
	m.bootstrapSecret(way{hub: brief}.kubeconfig(t))
	m.start()
	m.admit(brief)
	id := string(m.secret().Data[csr.KeyAgentName])
	m.restart()
	m.awaitJoined(brief)
	m.eventually(func() bool { return len(m.undecided(brief)) == 0 }, "no request waits for a person")
	assert.Equal(t, id, string(m.secret().Data[csr.KeyAgentName]))
	m.awaitNewCertificate(m.certificate())
	for _, request := range m.requests(brief)[1:] {
		assert.Equal(t, csr.ClusterUser(m.name, id), userOf(t, request))
	}
	assert.Equal(t, 1, m.agent.Log.Count("there is no credential for the hub yet"), "it joined once")
}

// userOf is the user that a request asks for.
func userOf(t *testing.T, request certificatesv1.CertificateSigningRequest) string {
	t.Helper()
	parsed, err := csr.ParseRequest(request.Spec.Request)
	require.NoError(t, err)
	return parsed.Subject.CommonName
}

// Shows: registration/other-name-other-cluster
func TestAnotherClusterNameJoinsAsAnotherCluster(t *testing.T) {
	m := newMember(t, "renamed")
	m.bootstrapSecret(way{hub: first}.kubeconfig(t))
	m.start()
	m.admit(first)
	former := m.certificate()
	m.stop()
	m.name += "-b"
	m.config.ClusterName = m.name
	m.start()
	m.approve(first)
	m.accept(first, true)
	m.awaitNewCertificate(former)
	m.awaitJoined(first)
	assert.Equal(t, m.name, string(m.secret().Data[csr.KeyClusterName]))
}

// Shows: registration/renamed-cluster-entry
func TestARenamedClusterEntryAsksForANewCertificate(t *testing.T) {
	m := newMember(t, "entry")
	m.bootstrapSecret(way{hub: first}.kubeconfig(t))
	m.start()
	m.admit(first)
	former := m.certificate()
	m.bootstrapSecret(way{hub: first, entry: "renamed"}.kubeconfig(t))
	m.approve(first)
	m.awaitNewCertificate(former)
	m.awaitJoined(first)
	server, err := issue.ParseHubServer(m.secret().Data[csr.KeyKubeconfig])
	require.NoError(t, err)
	assert.Equal(t, "renamed", server.Cluster)
	assert.Len(t, m.requests(first), 2)
}

// Shows: registration/broken-bootstrap-waited-for
func TestABrokenBootstrapFileIsWaitedFor(t *testing.T) {
	good := way{hub: first}.kubeconfig(t)
	tests := map[string]struct {
		content []byte
		says    string
	}{
		"that is no kubeconfig": {[]byte("{{ invalid"), "it is no kubeconfig"},
		"that is empty":         {[]byte{}, "it is empty"},
		"that is missing":       {nil, "does not exist"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMember(t, "broken")
			m.config.BootstrapKubeconfig = filepath.Join(m.dir, "mounted", "later", "kubeconfig")
			if tc.content != nil {
				require.NoError(t, os.MkdirAll(filepath.Dir(m.config.BootstrapKubeconfig), 0o700))
				require.NoError(t, os.WriteFile(m.config.BootstrapKubeconfig, tc.content, 0o600))
			}
			m.start()
			m.awaitState(tc.says)
			assert.Nil(t, m.cluster(first))
			assert.Empty(t, m.requests(first))
			assert.Nil(t, m.secret())
			require.NoError(t, os.MkdirAll(filepath.Dir(m.config.BootstrapKubeconfig), 0o700))
			require.NoError(t, os.WriteFile(m.config.BootstrapKubeconfig, good, 0o600))
			m.admit(first)
		})
	}
}

// A Secret that is mounted changes by one link; see the kubelet.
func TestABootstrapSecretThatIsMountedIsReadAgain(t *testing.T) {
	m := newMember(t, "mounted")
	mount := func(version string, data []byte) {
		dir := filepath.Join(m.dir, "mount")
		require.NoError(t, os.MkdirAll(filepath.Join(dir, version), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, version, "kubeconfig"), data, 0o600))
		fresh := filepath.Join(dir, "..new")
		require.NoError(t, os.Symlink(version, fresh))
		require.NoError(t, os.Rename(fresh, filepath.Join(dir, "..data")))
		if _, err := os.Lstat(filepath.Join(dir, "kubeconfig")); err != nil {
			require.NoError(t, os.Symlink(filepath.Join("..data", "kubeconfig"), filepath.Join(dir, "kubeconfig")))
		}
	}
	mount("..1", way{hub: first, token: "nobody"}.kubeconfig(t))
	m.config.BootstrapKubeconfig = filepath.Join(m.dir, "mount", "kubeconfig")
	m.start()
	m.awaitState("401 Unauthorized")
	mount("..2", way{hub: first}.kubeconfig(t))
	m.admit(first)

	// A new credential in it, and none at all, are no reason to stop.
	choices := m.choices()
	mount("..3", way{hub: first, token: "another"}.kubeconfig(t))
	require.NoError(t, os.RemoveAll(filepath.Join(m.dir, "mount")))
	m.atRest()
	_, ready := m.state()
	assert.True(t, ready)
	assert.Equal(t, choices, m.choices())
}

// Shows: registration/expired-joins-again
func TestAnAgentWhoseCertificateExpiredJoinsAgain(t *testing.T) {
	m := newMember(t, "expired")
	m.bootstrapSecret(way{hub: brief}.kubeconfig(t))
	m.start()
	m.admit(brief)
	m.stop()
	former := m.certificate()
	m.awaitExpiry(former)
	m.start()
	m.approve(brief)
	m.awaitNewCertificate(former)
	m.awaitJoined(brief)
}

// Shows: registration/hub-away-until-expiry
func TestAHubThatIsAwayUntilTheCertificateExpiredIsJoinedAgain(t *testing.T) {
	l := link(t, brief)
	m := newMember(t, "away")
	m.bootstrapSecret(way{hub: brief, server: l.Host}.kubeconfig(t))
	m.start()
	m.admit(brief)
	l.Cut()
	former := m.certificate()
	m.awaitState("joining: hub " + l.Host + " does not answer")
	l.Mend()
	m.approve(brief)
	m.awaitNewCertificate(former)
	m.awaitJoined(brief)
}

// Shows: registration/wrong-bootstrap-repaired
func TestAWrongBootstrapSecretIsRepaired(t *testing.T) {
	m := newMember(t, "repaired")
	m.bootstrapSecret(way{hub: first, server: "https://127.0.0.1:1"}.kubeconfig(t))
	m.start()
	m.awaitState("hub https://127.0.0.1:1 does not answer")
	m.bootstrapSecret(way{hub: first}.kubeconfig(t))
	m.admit(first)
	m.registerAddon(first)
}

// Shows: registration/bootstrap-moves-hub
func TestABootstrapSecretThatLeadsToANewHubMovesTheClusterThere(t *testing.T) {
	m := newMember(t, "moves")
	m.bootstrapSecret(way{hub: first}.kubeconfig(t))
	m.start()
	m.admit(first)
	former := m.certificate()
	first := m.registerAddon(first)
	m.bootstrapSecret(way{hub: brief}.kubeconfig(t))
	m.eventually(func() bool { return len(m.undecided(brief)) > 0 }, "a request on the new hub")
	assert.Equal(t, former, m.certificate(), "the old credential stays until the new one is there")
	m.admit(brief)
	second := m.registerAddon(brief)
	assert.NotEqual(t, first, second, "the credential of the add-on is one of the new hub")
}

func TestADeletedBootstrapSecretIsNoReasonToStop(t *testing.T) {
	m := newMember(t, "deleted")
	m.bootstrapSecret(way{hub: first}.kubeconfig(t))
	m.start()
	m.admit(first)
	choices := m.choices()
	m.bootstrapSecret(way{hub: first, token: "another"}.kubeconfig(t))
	m.atRest()
	m.deleteBootstrapSecret()
	m.atRest()
	assert.Equal(t, choices, m.choices())
	_, ready := m.state()
	assert.True(t, ready)

	// And an agent that starts without one serves with what it has, but says so.
	m.restart()
	m.awaitJoined(first)
	assert.Positive(t, m.agent.Log.Count("but there is no way to join again"))
}

func TestFlagsThatCanNeverWorkEndTheProcess(t *testing.T) {
	config := agent.DefaultConfig()
	config.ClusterName = "managed-clusters"
	require.ErrorContains(t, agent.Run(t.Context(), config), "--spoke-cluster-name")
}
