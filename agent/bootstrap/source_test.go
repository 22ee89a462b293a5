package bootstrap

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
	"github.com/spokelet/spokelet/csr/issue"
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
	found := readFile(t, path, kubeconfig)
	require.ErrorContains(t, found.Problem, "ca.crt", "a file that is missing is named")
	require.ErrorContains(t, found.Problem, path)
	authority := filepath.Join(dir, "ca.crt")
	assert.Equal(t, []string{path, authority}, found.Files, "a file that is missing is watched for")

	require.NoError(t, os.WriteFile(authority, []byte("a CA"), 0o600))
	found = readFile(t, path, kubeconfig)
	require.NoError(t, found.Problem)
	config, err := clientcmd.Load(found.Kubeconfig)
	require.NoError(t, err)
	assert.Equal(t, []byte("a CA"), config.Clusters["hub"].CertificateAuthorityData)
	assert.Empty(t, config.Clusters["hub"].CertificateAuthority)
	assert.Equal(t, "https://hub.example.com:6443", found.Server.Server)
}

// readFile reads a bootstrap kubeconfig from a file with that content.
func readFile(t *testing.T, path, content string) Candidate {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	found, err := Source{File: path}.Read(t.Context(), nil)
	require.NoError(t, err)
	return found
}

// assertSecretRefused reads a bootstrap kubeconfig from a Secret with that content, which must have that problem.
func assertSecretRefused(t *testing.T, content, want string) {
	t.Helper()
	secret := types.NamespacedName{Namespace: "agent", Name: "bootstrap-hub-kubeconfig"}
	c := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name},
		Data:       map[string][]byte{csr.KeyKubeconfig: []byte(content)},
	}).Build()
	found, err := Source{Secret: secret}.Read(t.Context(), c)
	require.NoError(t, err)
	require.ErrorContains(t, found.Problem, "in Secret "+secret.String())
	require.ErrorContains(t, found.Problem, want)
}

func TestWhatIsWrongWithABootstrapKubeconfigIsTold(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"garbage":              {"garbage", "bootstrap kubeconfig"},
		"nothing":              {"", "it is empty"},
		"no current context":   {"apiVersion: v1\nkind: Config\n", "current-context"},
		"an unknown context":   {"apiVersion: v1\nkind: Config\ncurrent-context: x\n", `current-context is "x", but contexts has no such entry`},
		"a server that is not": {"apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: nonsense}}]\n", "nonsense"},
	}
	secret := types.NamespacedName{Namespace: "agent", Name: "bootstrap-hub-kubeconfig"}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			found := readFile(t, path, tc.content)
			require.ErrorContains(t, found.Problem, path)
			require.ErrorContains(t, found.Problem, tc.want)
			assertSecretRefused(t, tc.content, tc.want)
		})
	}
	path := filepath.Join(t.TempDir(), "missing")
	found, err := Source{File: path}.Read(t.Context(), nil)
	require.NoError(t, err)
	require.EqualError(t, found.Problem, "bootstrap kubeconfig "+path+" does not exist")
	found, err = Source{Secret: secret}.Read(t.Context(), fake.NewClientBuilder().Build())
	require.NoError(t, err)
	require.EqualError(t, found.Problem, "bootstrap kubeconfig in Secret "+secret.String()+" does not exist")
	_, err = Source{Secret: secret}.Read(t.Context(), unreadable{})
	require.ErrorIs(t, err, context.DeadlineExceeded, "what cannot be read is not known")
}

// unreadable is an API server that does not answer.
type unreadable struct{ client.Reader }

func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return context.DeadlineExceeded
}

// Shows: registration/bootstrap-change-noticed
func TestABootstrapKubeconfigThatLeadsElsewhereEndsServing(t *testing.T) {
	hub := issue.HubServer{Cluster: "hub", Server: "https://hub", CAData: []byte("ca")}
	with := func(change func(h *issue.HubServer)) Candidate {
		h := hub
		change(&h)
		return Candidate{Target: Target{Server: h}}
	}
	same := with(func(*issue.HubServer) {})
	missing := Candidate{Problem: errMissing}
	broken := Candidate{Problem: os.ErrPermission}
	moved := with(func(h *issue.HubServer) { h.Server = "https://new" })
	tests := map[string]struct {
		now  []Candidate
		ends bool
	}{
		"the same hub goes on, with whatever credential": {[]Candidate{same}, false},
		"another server ends":                            {[]Candidate{moved}, true},
		"another proxy ends":                             {[]Candidate{with(func(h *issue.HubServer) { h.ProxyURL = "http://p" })}, true},
		"another CA ends":                                {[]Candidate{with(func(h *issue.HubServer) { h.CAData = []byte("x") })}, true},
		"another cluster entry ends":                     {[]Candidate{with(func(h *issue.HubServer) { h.Cluster = "x" })}, true},
		"one that is gone goes on":                       {[]Candidate{missing}, false},
		"one that cannot be read goes on":                {[]Candidate{broken}, false},
		"one of several that leads there is enough":      {[]Candidate{moved, same}, false},
		"none of several ends":                           {[]Candidate{moved, moved}, true},
		"none, and one is gone, ends":                    {[]Candidate{moved, missing}, true},
		"one that cannot be read may be the one":         {[]Candidate{moved, broken}, false},
		"all gone goes on":                               {[]Candidate{missing, missing}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.ends, Moved(hub, tc.now) != "")
		})
	}
}
