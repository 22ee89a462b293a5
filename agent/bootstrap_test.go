package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeconfig names its CA and its token by files beside it.
const kubeconfig = `
apiVersion: v1
kind: Config
current-context: hub
clusters: [{name: hub, cluster: {server: "https://hub.example.com:6443", certificate-authority: ca.crt}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: hub, context: {cluster: hub, user: u}}]
`

func TestBootstrapFileIsReadWithWhatItNames(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfig), 0o600))
	source := bootstrapSource{file: path}
	_, err := source.read(t.Context(), nil)
	require.ErrorContains(t, err, "ca.crt", "a file that is missing is named")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("a CA"), 0o600))
	raw, err := source.read(t.Context(), nil)
	require.NoError(t, err)
	config, err := clientcmd.Load(raw)
	require.NoError(t, err)
	assert.Equal(t, []byte("a CA"), config.Clusters["hub"].CertificateAuthorityData)
	assert.Empty(t, config.Clusters["hub"].CertificateAuthority)
	boot, err := source.parse(raw)
	require.NoError(t, err)
	assert.Equal(t, "https://hub.example.com:6443", boot.server.Server)
}

func TestRunRefusesABootstrapThatCannotWork(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"garbage":              {"garbage", "bootstrap kubeconfig"},
		"nothing":              {"", "bootstrap kubeconfig"},
		"no current context":   {"apiVersion: v1\nkind: Config\n", "current-context"},
		"an unknown context":   {"apiVersion: v1\nkind: Config\ncurrent-context: x\n", "\"x\""},
		"a server that is not": {"apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: nonsense}}]\n", "nonsense"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			config := DefaultConfig()
			config.BootstrapKubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
			require.NoError(t, os.WriteFile(config.BootstrapKubeconfig, []byte(tc.content), 0o600))
			err := Run(t.Context(), config)
			require.ErrorContains(t, err, config.BootstrapKubeconfig)
			require.ErrorContains(t, err, tc.want)
		})
	}
	config := DefaultConfig()
	config.BootstrapKubeconfig = filepath.Join(t.TempDir(), "missing")
	require.ErrorContains(t, Run(t.Context(), config), "missing")
}
