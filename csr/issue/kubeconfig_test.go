package issue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const bootstrap = `
apiVersion: v1
kind: Config
current-context: to-hub
contexts:
- name: to-hub
  context: {cluster: hub, user: joiner, namespace: x}
clusters:
- name: hub
  cluster: {server: "https://hub.example.com:6443", proxy-url: "http://proxy:3128", certificate-authority-data: Y2E=}
users:
- name: joiner
  user: {token: secret}
`

// Shows: registration/rotation-decided, registration/credential-judged
func TestKubeconfigOfACredential(t *testing.T) {
	server, err := ParseHubServer([]byte(bootstrap))
	require.NoError(t, err)
	assert.Equal(t, HubServer{
		Cluster: "hub", Server: "https://hub.example.com:6443", ProxyURL: "http://proxy:3128", CAData: []byte("ca"),
	}, server)

	raw, err := server.Kubeconfig()
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, yaml.Unmarshal(raw, &got))
	assert.Equal(t, "default-context", got["current-context"])
	assert.Equal(t, []any{map[string]any{"name": "hub", "cluster": map[string]any{
		"server": "https://hub.example.com:6443", "proxy-url": "http://proxy:3128", "certificate-authority-data": "Y2E=",
	}}}, got["clusters"])
	assert.Equal(t, []any{map[string]any{"name": "default-auth", "user": map[string]any{
		"client-certificate": "tls.crt", "client-key": "tls.key",
	}}}, got["users"])
	assert.Equal(t, []any{map[string]any{"name": "default-context", "context": map[string]any{
		"cluster": "hub", "user": "default-auth", "namespace": "configuration",
	}}}, got["contexts"])

	assert.True(t, server.Describes(raw))
	assert.False(t, server.Describes([]byte(bootstrap)), "another user")
	other := server
	other.CAData = []byte("other")
	assert.False(t, other.Describes(raw))
	assert.True(t, other.SameHub(server), "another way to the same hub")
	assert.Equal(t, server.Name(), other.Name())
	other.Server = "https://other.example.com"
	assert.False(t, other.SameHub(server))
	assert.NotEqual(t, server.Name(), other.Name())
}

func TestParseHubServerSaysWhatIsWrong(t *testing.T) {
	tests := map[string]struct{ kubeconfig, want string }{
		"nothing":                   {" \n", "it is empty"},
		"no YAML":                   {"{", "it is no kubeconfig"},
		"no kubeconfig":             {"- a\n- b\n", "it is no kubeconfig"},
		"no current context":        {"apiVersion: v1\nkind: Config\n", "current-context is not set"},
		"a missing current context": {"current-context: x\n", `current-context is "x", but contexts has no such entry`},
		"a missing cluster": {
			"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n",
			`context "x" names cluster "c", but clusters has no such entry`,
		},
		"no server": {
			"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {}}]\n",
			`cluster "c" has no server: set it to the URL of the hub`,
		},
		"a server that is no URL": {
			"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'hub:1'}}]\n",
			`cluster "c" has server "hub:1", which is no URL`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseHubServer([]byte(tc.kubeconfig))
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

// FuzzHubServer reads any bytes as a kubeconfig: the kubeconfig that is written for what was read leads to the same
// hub, and is known again.
func FuzzHubServer(f *testing.F) {
	f.Add([]byte(`{"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "hub", "user": "u"}}],
"clusters": [{"name": "hub", "cluster": {"server": "https://hub:6443", "proxy-url": "http://p", "certificate-authority-data": "Y2E="}}]}`))
	f.Add([]byte("current-context: x\ncontexts:\n- name: x\nclusters:\n- name: \"\"\n  cluster: {server: https://h}\n"))
	f.Add([]byte("apiVersion: v1\nkind: Config\nclusters: null\n"))
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		server, err := ParseHubServer(kubeconfig)
		if err != nil {
			require.Equal(t, HubServer{}, server)
			require.False(t, server.Describes(kubeconfig))
			return
		}
		require.NotEmpty(t, server.Server)
		written, err := server.Kubeconfig()
		require.NoError(t, err)
		require.True(t, server.Describes(written), "written: %s", written)
		require.False(t, server.DescribesToken(written), "written: %s", written)
		again, err := ParseHubServer(written)
		require.NoError(t, err)
		require.True(t, server.Equal(again))
		require.Equal(t, server.Name(), again.Name())
		if server.Describes(kubeconfig) {
			require.True(t, again.Describes(kubeconfig))
		}
	})
}
