package crash_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
)

// addonName is the add-on of every cluster in these tests.
const addonName = "crash"

// soul is a cluster that joins the hub: what is left of an agent when it dies.
type soul struct {
	t *testing.T
	// name is the name of the cluster; the namespace of the agent is named after it, and so is that of the add-on.
	name  string
	hub   client.Client
	spoke client.Client
	plane *sandbox.ControlPlane
	// config holds what every agent of this cluster is started with.
	config agent.Config
	log    *safeBuffer
}

// newSoul prepares a cluster of its own on the shared spoke: namespaces, ServiceAccount and the rights that we ship, as
// a klusterlet of another name has them.
func newSoul(t *testing.T, name string) *soul {
	t.Helper()
	cluster := shared.Cluster("spoke")
	s := &soul{
		t: t, name: name, hub: shared.HubClient, spoke: cluster.Client, plane: cluster.ControlPlane, log: &safeBuffer{},
	}
	rename := strings.NewReplacer(
		names.NamespaceAgentAddon, s.addonNamespace(), names.NamespaceAgent, s.agentNamespace(),
		"open-cluster-management:klusterlet-", "open-cluster-management:"+name+"-",
		"open-cluster-management:management:klusterlet-", "open-cluster-management:management:"+name+"-",
	)
	var docs [][]byte
	for _, doc := range manifests.Klusterlet() {
		docs = append(docs, []byte(rename.Replace(string(doc))))
	}
	require.NoError(t, s.plane.Apply(t.Context(), docs...))
	bootstrap, err := shared.Bootstrap(t.Context(), name)
	require.NoError(t, err)
	own, err := s.plane.ServiceAccount(t.Context(), s.agentNamespace(), names.ServiceAccountAgent)
	require.NoError(t, err)
	ownPath, err := shared.Kubeconfig(s.plane, own, name+"-agent")
	require.NoError(t, err)
	s.config = agent.DefaultConfig()
	s.config.ClusterName, s.config.Namespace = name, s.agentNamespace()
	s.config.BootstrapKubeconfig, s.config.Kubeconfig = bootstrap, ownPath
	s.config.LeaderElect = false
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the agents of %s:\n%s", name, s.log.String())
		}
	})
	return s
}

func (s *soul) agentNamespace() string { return s.name + "-agent" }
func (s *soul) addonNamespace() string { return s.name + "-addon" }

// live runs an agent until stop is called or the axe falls; stop waits for its end.
func (s *soul) live(a *axe) (stop func()) {
	logger := logr.FromSlogHandler(slog.NewTextHandler(s.log, nil))
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(s.t.Context(), logger))
	a.cluster, a.fell = s.name, cancel
	config := s.config
	config.WrapTransport = a.wrap
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, config) }()
	return sync.OnceFunc(func() {
		cancel()
		require.NoError(s.t, <-ended)
	})
}

// accept accepts the cluster as soon as it exists, and installs its add-on.
func (s *soul) accept() {
	s.t.Helper()
	require.NoError(s.t, shared.Accept(s.t.Context(), s.name, nil))
	eventually(s.t, "the namespace of the cluster", func(ctx context.Context) error {
		return s.hub.Get(ctx, client.ObjectKey{Name: s.name}, &corev1.Namespace{})
	})
	require.NoError(s.t, installAddon(s.t.Context(), s.hub, s.name, s.addonNamespace()))
}

// safeBuffer is a buffer for several writers.
type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write implements io.Writer.
func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

// String returns what was written.
func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func key(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
