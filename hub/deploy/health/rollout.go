package health

import (
	"fmt"
	"slices"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
)

// RollingOut lists the workloads whose pods are not all of the present version and ready, as far as the feedback shows:
// while a workload changes, it has fewer ready pods than pods, or fewer than it should have, or pods of the earlier
// version. One of those keeps a Deployment available, so its health does not show that the present version fails.
// Workloads of which nothing is known are not listed.
func RollingOut(works []Work) []string {
	var rolling []string
	for _, work := range works {
		for _, o := range work.Objects {
			w, judged := workloadOf(addon.HealthWorkloads, o)
			if !judged {
				continue
			}
			values, fedBack := integers(o.id(w), work.ManifestWork)
			// Feedback that an author alone asked for says nothing about pods.
			fedBack = fedBack && Asks(addon.HealthWorkloads, o, work.ManifestWork)
			if why := w.rollingOut(o.Replicas, values, fedBack); why != "" {
				rolling = append(rolling, o.String()+" "+why)
			}
		}
	}
	slices.Sort(rolling)
	return rolling
}

// rollingOut returns why the rollout of a workload is not complete; empty when it is, or nothing is known. want is how
// many pods its manifest asks for; -1 leaves that to the cluster. Kubernetes omits numbers that are 0, so an agent that
// fed back, but not how many pods there are, says that there are none: a quota or a policy may refuse them all. What
// the spec asks for is never omitted. With it the agent has said all, and pods of the present version that it did not
// count are none.
func (w workload) rollingOut(want int64, values map[string]int64, fedBack bool) string {
	stated, answered := values[specReplicas]
	if answered { // An autoscaler may have written another number than the manifest has.
		want = stated
	}
	ready, pods := values[w.ready], values[w.desired]
	_, known := values[w.desired]
	counted := slices.ContainsFunc(w.rollout, func(path workv1.JsonPath) bool { return path.Name == updatedReplicas })
	changed, numbered := values[generation]
	switch all, updated := max(pods, want), values[updatedReplicas]; {
	case numbered && values[observedGeneration] < changed:
		return "was changed, and what it counts is from before"
	case !known && !fedBack && !answered:
	case ready < all:
		return fmt.Sprintf("has %d ready of %d pods", ready, all)
	case answered && counted && updated < all:
		return fmt.Sprintf("has %d of %d pods of the present version", updated, all)
	}
	return ""
}
