package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
)

// mounted writes the files of a credential as they are mounted, changed by change, and returns the directory.
func mounted(t *testing.T, user string, change func(files map[string][]byte)) string {
	t.Helper()
	server := issue.HubServer{Cluster: "hub", Server: "https://hub.example.com:6443", CAData: []byte("CA")}
	kubeconfig, err := server.Kubeconfig()
	require.NoError(t, err)
	pair := pairFor(t, user)
	files := map[string][]byte{
		"kubeconfig": kubeconfig, "tls.crt": pair.Certificate, "tls.key": pair.Key, "cluster-name": []byte("c1\n"),
	}
	if change != nil {
		change(files)
	}
	dir := t.TempDir()
	for name, data := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return dir
}

func TestWhoDoesWorksUsesTheCredentialThatIsMounted(t *testing.T) {
	dir := mounted(t, csr.ClusterUser("c1", "a1"), nil)
	for _, named := range []string{"", "c1"} {
		found := readMember(filepath.Join(dir, "kubeconfig"), named)
		require.NoError(t, found.problem)
		assert.Equal(t, csr.Identity{Cluster: "c1", Agent: "a1"}, found.credential.Identity)
		assert.Equal(t, "https://hub.example.com:6443", found.credential.Server.Server)
		assert.Contains(t, found.files, filepath.Join(dir, "tls.crt"), "it is watched")
		assert.True(t, found.same(readMember(filepath.Join(dir, "kubeconfig"), named)))
	}
}

func TestWhatIsWrongWithAMountedCredentialIsTold(t *testing.T) {
	user := csr.ClusterUser("c1", "a1")
	without := func(names ...string) func(map[string][]byte) {
		return func(files map[string][]byte) {
			for _, name := range names {
				delete(files, name)
			}
		}
	}
	tests := map[string]struct {
		user, cluster string
		change        func(files map[string][]byte)
		after         time.Duration
		problem       string
	}{
		"nothing is there yet": {
			user: user, change: without("kubeconfig"), problem: "kubeconfig does not exist yet: the registration agent writes it",
		},
		"an empty file": {
			user: user, change: func(f map[string][]byte) { f["kubeconfig"] = nil }, problem: "it is empty",
		},
		"no kubeconfig": {
			user: user, change: func(f map[string][]byte) { f["kubeconfig"] = []byte("{{") }, problem: "it is no kubeconfig",
		},
		"its certificate is not there": {user: user, change: without("tls.crt"), problem: "tls.crt"},
		"it proves itself otherwise": {
			user: user, change: func(f map[string][]byte) {
				config, err := clientcmd.Load(f["kubeconfig"])
				require.NoError(t, err)
				for name := range config.AuthInfos {
					config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: "t"}
				}
				f["kubeconfig"], err = clientcmd.Write(*config)
				require.NoError(t, err)
			}, problem: "it has no client certificate with its key",
		},
		"it is for another cluster": {
			user: user, cluster: "c2", problem: "its certificate is for cluster c1, this agent is for cluster c2",
		},
		"nothing names the cluster": {
			user: "somebody", change: without("cluster-name"), problem: "set --spoke-cluster-name",
		},
		"it expired": {user: user, after: 100 * 365 * 24 * time.Hour, problem: "its certificate expired at"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(mounted(t, tc.user, tc.change), "kubeconfig")
			found := readMember(path, tc.cluster)
			found.expire(path, time.Now().Add(tc.after))
			assert.Equal(t, tc.after > 0, found.expired)
			require.ErrorContains(t, found.problem, tc.problem)
			assert.Contains(t, found.files, path, "it is watched until it is right")
		})
	}
	found := readMember(filepath.Join(mounted(t, user, without("cluster-name")), "kubeconfig"), "")
	require.NoError(t, found.problem)
	assert.Equal(t, "c1", found.credential.Identity.Cluster, "the certificate names it")
}
