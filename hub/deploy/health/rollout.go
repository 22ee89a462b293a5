package health

import (
	"fmt"
	"slices"

	"github.com/spokelet/spokelet/hub/addon"
)

// RollingOut lists the workloads whose pods are not all of the present version and ready, as far as the feedback shows:
// while a workload changes, it has fewer ready pods than pods, or fewer than it should have. One pod of the earlier
// version keeps a Deployment available, so its health does not show that the present version fails. Workloads of which
// nothing is known are not listed. Kubernetes omits numbers that are 0, so a workload about which the agent has fed
// back, but not how many pods it has, has none: a quota or a policy may refuse them all.
func RollingOut(works []Work) []string {
	var rolling []string
	for _, work := range works {
		for _, o := range work.Objects {
			w, judged := workloadOf(addon.HealthWorkloads, o)
			if !judged {
				continue
			}
			values, fedBack := integers(o.id(w), work.ManifestWork)
			ready, pods := values[w.ready], values[w.desired]
			if _, known := values[w.desired]; (known || fedBack) && (ready < pods || ready < o.Replicas) {
				rolling = append(rolling, fmt.Sprintf("%s has %d ready of %d pods", o, ready, max(pods, o.Replicas)))
			}
		}
	}
	slices.Sort(rolling)
	return rolling
}
