package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
)

// TestABadBootstrapKubeconfigIsNamed starts the agent as a user would, with a bootstrap kubeconfig that is not one.
func TestABadBootstrapKubeconfigIsNamed(t *testing.T) {
	f := shared.fleet
	cluster := f.Cluster("cluster1")
	identity, err := cluster.ControlPlane.ServiceAccount(t.Context(), names.NamespaceAgent, names.ServiceAccountAgent)
	require.NoError(t, err)
	kubeconfig, err := cluster.ControlPlane.Kubeconfig(identity)
	require.NoError(t, err)
	dir := t.TempDir()
	own := filepath.Join(dir, "own.kubeconfig")
	require.NoError(t, os.WriteFile(own, kubeconfig, 0o600))

	tests := map[string]struct {
		content string
		want    []string
	}{
		"a file that is no YAML": {content: "{{ not yaml", want: []string{"bootstrap kubeconfig", "bootstrap.kubeconfig"}},
		"a kubeconfig without a current context": {
			content: "apiVersion: v1\nkind: Config\nclusters: []\n",
			want:    []string{"bootstrap kubeconfig", "context"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			bootstrap := filepath.Join(dir, "bootstrap.kubeconfig")
			require.NoError(t, os.WriteFile(bootstrap, []byte(tc.content), 0o600))
			agent := &sandbox.Process{
				Name: "agent", Path: filepath.Join(shared.binaries, "spokelet"), LogPath: filepath.Join(dir, "log"),
				Args: []string{
					"--spoke-cluster-name=" + cluster.Name, "--bootstrap-kubeconfig=" + bootstrap, "--kubeconfig=" + own,
					// Not where the agent of this cluster keeps its credential: with one it would serve.
					"--namespace=default", "--leader-elect=false",
				},
			}
			require.NoError(t, agent.Start())
			t.Cleanup(agent.Kill)
			for _, want := range tc.want {
				require.Eventually(t, func() bool { return strings.Contains(agent.Log(), want) }, 30*time.Second,
					50*time.Millisecond, "the log names %q", want)
			}
			assert.NoError(t, agent.Exited(), "the agent waits until the file is repaired")
		})
	}
}
