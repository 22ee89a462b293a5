package skew

import (
	"context"
	"io"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// kubelets play the kubelets of all clusters: pods of the add-on run and are ready, but those of versions that do not
// start, and those beyond a limit.
type kubelets struct {
	log io.Writer

	mu sync.Mutex
	// broken are the versions that do not start. limits has how many clusters may run a version, where that is limited,
	// and runs which ones do.
	broken map[string]bool
	limits map[string]int
	runs   map[string]map[string]bool
}

func newKubelets(log io.Writer) *kubelets {
	return &kubelets{log: log, broken: map[string]bool{}, limits: map[string]int{}, runs: map[string]map[string]bool{}}
}

// breaks lets no pod of a version start.
func (k *kubelets) breaks(version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.broken[version] = true
}

// limit lets pods of a version run on so many clusters, and no others.
func (k *kubelets) limit(version string, clusters int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.limits[version] = clusters
}

// open takes the limit of a version away.
func (k *kubelets) open(version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.limits, version)
}

// may reports whether a pod of a version may run on a cluster, and notes that it does.
func (k *kubelets) may(version, cluster string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken[version] {
		return false
	}
	running := k.runs[version]
	if running == nil {
		running = map[string]bool{}
		k.runs[version] = running
	}
	if limit, limited := k.limits[version]; limited && !running[cluster] && len(running) >= limit {
		return false
	}
	running[cluster] = true
	return true
}

// serve plays the kubelets of one cluster until ctx ends.
func (k *kubelets) serve(ctx context.Context, cluster *fleet.Cluster) {
	may := func(pod *corev1.Pod) bool {
		return pod.Labels["app"] == addOnName && k.may(versionOf(pod.Spec), cluster.Name)
	}
	cluster.RunPods(ctx, names.NamespaceAgentAddon, may, k.log)
}

// versionOf returns the version of the add-on that a pod runs: the tag of its image.
func versionOf(pod corev1.PodSpec) string {
	if len(pod.Containers) == 0 {
		return ""
	}
	_, tag, _ := strings.Cut(pod.Containers[0].Image, ":")
	return tag
}
