package join_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
)

// In hosted mode the agent runs on the first hub's cluster, and the managed cluster is the other one.
func TestTheKubeconfigOfAHostedClusterIsReadAgain(t *testing.T) {
	for _, docs := range [][][]byte{manifests.SpokeCRDs(), manifests.Klusterlet()} {
		require.NoError(t, brief.Apply(t.Context(), docs...))
	}
	kubeconfig := func() []byte {
		spoke, err := brief.ServiceAccount(t.Context(), names.NamespaceAgent, names.ServiceAccountAgent)
		require.NoError(t, err)
		data, err := brief.Kubeconfig(spoke)
		require.NoError(t, err)
		return data
	}
	m := newMember(t, "hosted")
	m.bootstrapSecret(way{hub: first}.kubeconfig(t))
	m.config.SpokeKubeconfig = filepath.Join(m.dir, "spoke.kubeconfig")
	m.start()
	m.awaitState("--spoke-kubeconfig " + m.config.SpokeKubeconfig)
	m.write("spoke.kubeconfig", kubeconfig())
	m.admit(first)

	m.write("spoke.kubeconfig", []byte("{{ broken"))
	m.eventually(func() bool { return m.agent.Log.Count("going on with the former one") > 0 }, "what is wrong is told")
	m.write("spoke.kubeconfig", append(kubeconfig(), "# another token\n"...))
	m.eventually(func() bool { return m.agent.Log.Count("the kubeconfig of the managed cluster changed") > 0 }, "the new one is used")
	m.awaitJoined(first)
}

// The agent of this test runs in the namespace that is shipped, where it may hold a leader lease.
func TestEveryTransportOfTheAgentIsWrapped(t *testing.T) {
	m := newMember(t, "wrapped")
	m.namespace, m.config.Namespace, m.config.LeaderElect = names.NamespaceAgent, names.NamespaceAgent, true
	var mu sync.Mutex
	seen := map[string]bool{}
	m.config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			seen[r.Method+" "+r.URL.Path] = true
			mu.Unlock()
			return next.RoundTrip(r)
		})
	}
	m.bootstrapSecret(way{hub: first}.kubeconfig(t))
	m.start()
	m.admit(first)
	for _, request := range []string{
		"POST /apis/coordination.k8s.io/v1/namespaces/" + names.NamespaceAgent + "/leases",
		"GET /api/v1/namespaces/" + names.NamespaceAgent + "/secrets",
		"POST /apis/cluster.open-cluster-management.io/v1/managedclusters",
		"PUT /apis/coordination.k8s.io/v1/namespaces/" + m.name + "/leases/managed-cluster-lease",
		"GET /api/v1/nodes",
		"GET /livez",
	} {
		m.eventually(func() bool {
			mu.Lock()
			defer mu.Unlock()
			for path := range seen {
				if strings.HasPrefix(path, request) {
					return true
				}
			}
			return false
		}, "%s passes the transport of the test", request)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
