package agent

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/csr"
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
	found, err := source.look(t.Context(), nil)
	require.NoError(t, err)
	require.ErrorContains(t, found.problem, "ca.crt", "a file that is missing is named")
	require.ErrorContains(t, found.problem, path)
	authority := filepath.Join(dir, "ca.crt")
	assert.Equal(t, []string{path, authority}, found.files, "a file that is missing is watched for")

	require.NoError(t, os.WriteFile(authority, []byte("a CA"), 0o600))
	found, err = source.look(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, found.problem)
	config, err := clientcmd.Load(found.kubeconfig)
	require.NoError(t, err)
	assert.Equal(t, []byte("a CA"), config.Clusters["hub"].CertificateAuthorityData)
	assert.Empty(t, config.Clusters["hub"].CertificateAuthority)
	assert.Equal(t, "https://hub.example.com:6443", found.server.Server)
}

func TestWhatIsWrongWithABootstrapKubeconfigIsTold(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"garbage":              {"garbage", "bootstrap kubeconfig"},
		"nothing":              {"", "bootstrap kubeconfig"},
		"no current context":   {"apiVersion: v1\nkind: Config\n", "current-context"},
		"an unknown context":   {"apiVersion: v1\nkind: Config\ncurrent-context: x\n", "\"x\""},
		"a server that is not": {"apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: nonsense}}]\n", "nonsense"},
	}
	secret := types.NamespacedName{Namespace: "agent", Name: "bootstrap-hub-kubeconfig"}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			require.NoError(t, os.WriteFile(path, []byte(tc.content), 0o600))
			found, err := bootstrapSource{file: path}.look(t.Context(), nil)
			require.NoError(t, err)
			require.ErrorContains(t, found.problem, path)
			require.ErrorContains(t, found.problem, tc.want)

			c := fake.NewClientBuilder().WithObjects(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name},
				Data:       map[string][]byte{csr.KeyKubeconfig: []byte(tc.content)},
			}).Build()
			found, err = bootstrapSource{secret: secret}.look(t.Context(), c)
			require.NoError(t, err)
			require.ErrorContains(t, found.problem, "in Secret "+secret.String())
			require.ErrorContains(t, found.problem, tc.want)
		})
	}
	path := filepath.Join(t.TempDir(), "missing")
	found, err := bootstrapSource{file: path}.look(t.Context(), nil)
	require.NoError(t, err)
	require.EqualError(t, found.problem, "bootstrap kubeconfig "+path+" does not exist")
	found, err = bootstrapSource{secret: secret}.look(t.Context(), fake.NewClientBuilder().Build())
	require.NoError(t, err)
	require.EqualError(t, found.problem, "bootstrap kubeconfig in Secret "+secret.String()+" does not exist")
	_, err = bootstrapSource{secret: secret}.look(t.Context(), unreadable{})
	require.ErrorIs(t, err, context.DeadlineExceeded, "what cannot be read is not known")
}

// unreadable is an API server that does not answer.
type unreadable struct{ client.Reader }

func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return context.DeadlineExceeded
}

// Row: spoke/event_handler_test.go:12
func TestABootstrapKubeconfigThatLeadsElsewhereEndsServing(t *testing.T) {
	hub := csr.HubServer{Cluster: "hub", Server: "https://hub", CAData: []byte("ca")}
	with := func(change func(h *csr.HubServer)) finding {
		h := hub
		change(&h)
		return finding{bootstrap: bootstrap{server: h}}
	}
	same := with(func(*csr.HubServer) {})
	missing := finding{problem: errNoBootstrap}
	broken := finding{problem: os.ErrPermission}
	moved := with(func(h *csr.HubServer) { h.Server = "https://new" })
	tests := map[string]struct {
		now  []finding
		ends bool
	}{
		"the same hub goes on, with whatever credential": {[]finding{same}, false},
		"another server ends":                            {[]finding{moved}, true},
		"another proxy ends":                             {[]finding{with(func(h *csr.HubServer) { h.ProxyURL = "http://p" })}, true},
		"another CA ends":                                {[]finding{with(func(h *csr.HubServer) { h.CAData = []byte("x") })}, true},
		"another cluster entry ends":                     {[]finding{with(func(h *csr.HubServer) { h.Cluster = "x" })}, true},
		"one that is gone goes on":                       {[]finding{missing}, false},
		"one that cannot be read goes on":                {[]finding{broken}, false},
		"one of several that leads there is enough":      {[]finding{moved, same}, false},
		"none of several ends":                           {[]finding{moved, moved}, true},
		"none, and one is gone, ends":                    {[]finding{moved, missing}, true},
		"one that cannot be read may be the one":         {[]finding{moved, broken}, false},
		"all gone goes on":                               {[]finding{missing, missing}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.ends, leadsElsewhere(hub, tc.now) != "")
		})
	}
}
