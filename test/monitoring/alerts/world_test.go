package alerts_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/monitoring/harness"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// update writes the table instead of comparing it.
var update = flag.Bool("update", false, "write the table of docs/operations/alerts.md")

const (
	// far is the cluster that most faults are done to, near the hub as a cluster of its own.
	far, near = "cluster1", "hub-itself"
	// page has the table between the two comments.
	page       = "../../../docs/operations/alerts.md"
	begin, end = "<!-- begin fired -->\n", "<!-- end fired -->"
)

// newWorld starts a fleet with an add-on on both of its clusters, and returns when all is well.
func newWorld(t *testing.T) *world {
	t.Helper()
	binaries := t.TempDir()
	require.NoError(t, harness.Build(t.Context(), binaries))
	f, err := harness.Start(t.Context(), harness.Options{
		Clusters: []string{far}, Loopback: near, Labels: map[string]string{"monitored": "yes"}, Binaries: binaries,
		// A fleet of two loses many clusters when it loses one.
		HubArgs: []string{"--removal-limit-clusters=0"},
		Log:     os.Stderr,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	w := &world{T: t, fleet: f, pods: &pods{refused: map[string]string{}}}
	w.pods.run(t, f.Clusters())
	w.apply("fleet.yaml", "")
	w.apply("logs.yaml", "v1")
	w.wellWith("v1")
	store, err := harness.Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	w.monitor, err = harness.NewMonitor(t.Context(), store, clock.RealClock{}, f.Targets, rules)
	require.NoError(t, err)
	return w
}

// apply applies a file to the hub, in a version.
func (w *world) apply(file, version string) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(w, err)
	text = bytes.ReplaceAll(text, []byte("VERSION"), []byte(version))
	w.eventually("the hub to take "+file, func(ctx context.Context) error { return w.fleet.Hub.Apply(ctx, text) })
}

// wellWith waits until the add-on is well on both clusters in a version.
func (w *world) wellWith(version string) {
	w.Helper()
	w.eventually("pods of version "+version, func(ctx context.Context) error {
		for _, cluster := range w.fleet.Clusters() {
			if err := runs(ctx, cluster, version); err != nil {
				return err
			}
		}
		return nil
	})
	w.metric(`spokelet_fleet_addons{addon="logs",code="well"}`, func(n float64) bool { return n == 2 })
	w.metric(`spokelet_fleet_rollouts{addon="logs",state="complete"}`, func(n float64) bool { return n == 2 })
}

// runs returns why no pod of a version is ready on a cluster.
func runs(ctx context.Context, cluster *fleet.Cluster, version string) error {
	var pods corev1.PodList
	if err := cluster.Client.List(ctx, &pods, client.InNamespace(names.NamespaceAgentAddon)); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if strings.HasSuffix(pod.Spec.Containers[0].Image, ":"+version) && pod.Status.Phase == corev1.PodRunning {
			return nil
		}
	}
	return fleet.NotYet("no pod of version %s runs on %s", version, cluster.Name)
}

// pods are the kubelets of the clusters, which do not run some pods.
type pods struct {
	mu sync.Mutex
	// refused is the end of the image that each cluster does not run.
	refused map[string]string
}

// run plays kubelets until the test ends.
func (p *pods) run(t *testing.T, clusters []*fleet.Cluster) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, cluster := range clusters {
		all.Go(func() {
			cluster.RunPods(ctx, names.NamespaceAgentAddon, func(pod *corev1.Pod) bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				end, some := p.refused[cluster.Name]
				return !some || !strings.HasSuffix(pod.Spec.Containers[0].Image, end)
			}, os.Stderr)
		})
	}
	t.Cleanup(func() { stop(); all.Wait() })
}

// refuse lets a cluster run no pods of a version from now on.
func (p *pods) refuse(cluster, version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused[cluster] = version
}

// runAll lets a cluster run all pods.
func (p *pods) runAll(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.refused, cluster)
}

// compare compares the table of the page, or writes it.
func compare(t *testing.T, want string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	have, after, closed := strings.Cut(rest, end)
	require.True(t, found && closed, "%s has no place for the table", page)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+want+end+after), 0o600))
		return
	}
	require.Equal(t, want, have, "go test ./alerts -update in test/monitoring writes the table")
}
