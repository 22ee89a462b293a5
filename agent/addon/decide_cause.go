package addon

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/unready"
)

const (
	// firstInspection is the time without a lease after which the cause is looked for: most agents are only starting.
	firstInspection = 2 * time.Second
	// minRecheck and maxRecheck bound the pause between two inspections; it doubles while nothing changes.
	minRecheck, maxRecheck = 5 * time.Second, 5 * time.Minute
	// maxNames is the largest number of names in one message.
	maxNames = 5
)

// namedAfter reports whether an object bears the name of the add-on, in its name or in a label.
func namedAfter(addon string, o metav1.ObjectMeta) bool {
	if strings.Contains(o.Name, addon) {
		return true
	}
	for _, value := range o.Labels {
		if value == addon {
			return true
		}
	}
	return false
}

// snapshotCause explains what probably keeps the add-on agent from renewing its lease, as far as the snapshot shows it;
// empty when the cause is unknown.
func snapshotCause(s snapshot, namespace string) string {
	switch s.namespace {
	case presenceMissing:
		return fmt.Sprintf("Namespace %s does not exist.", namespace)
	case presenceEnding:
		return fmt.Sprintf("Namespace %s is being deleted.", namespace)
	case presenceThere, presenceUnknown:
	}
	if text := podCause(s, namespace); text != "" {
		return text
	}
	return workloadCause(s, namespace)
}

// podCause describes a pod with a problem. The pods of an add-on cannot be identified for sure: a pod that bears its
// name comes first, and the message about another pod says that it may belong to something else.
func podCause(s snapshot, namespace string) string {
	own := slices.ContainsFunc(s.pods, func(p pod) bool { return p.own })
	alive := slices.ContainsFunc(s.pods, func(p pod) bool { return p.own == own && !p.ended })
	for _, p := range s.pods {
		if p.trouble == "" || p.own != own || (alive && p.ended) {
			continue
		}
		if own {
			return fmt.Sprintf("Pod %s/%s: %s.", namespace, p.name, p.trouble)
		}
		return fmt.Sprintf("No pod in namespace %s bears the name of the add-on. Pod %s, which may be another's: %s.",
			namespace, p.name, p.trouble)
	}
	return ""
}

// workloadCause describes Deployments and DaemonSets, and pods that run and still do not renew the lease.
func workloadCause(s snapshot, namespace string) string {
	if !s.workloadsKnown {
		return runningCause(s, namespace)
	}
	if len(s.workloads) == 0 {
		if len(s.pods) > 0 {
			return runningCause(s, namespace)
		}
		return fmt.Sprintf("There is no Deployment or DaemonSet in namespace %s.", namespace)
	}
	var others []string
	for _, w := range s.workloads {
		if !w.own {
			others = append(others, w.kind+" "+w.name)
			continue
		}
		name := fmt.Sprintf("%s %s/%s", w.kind, namespace, w.name)
		switch {
		case w.failure != "":
			return fmt.Sprintf("%s cannot make pods: %s.", name, w.failure)
		case w.wanted == 0 && w.kind == unready.KindDaemonSet:
			return name + " finds no node to run on."
		case w.wanted == 0:
			return name + " is scaled to 0."
		case s.podsKnown && len(s.pods) == 0:
			return name + " has no pods."
		}
		return runningCause(s, namespace)
	}
	return fmt.Sprintf("No Deployment or DaemonSet in namespace %s bears the name of the add-on; there are %s.",
		namespace, message.List(others, maxNames, ", "))
}

func runningCause(s snapshot, namespace string) string {
	for _, p := range s.pods {
		switch {
		case !p.own || p.ended:
		case p.ready:
			return fmt.Sprintf("Pod %s/%s runs: its log may say why it does not renew the lease.", namespace, p.name)
		default:
			return fmt.Sprintf("Pod %s/%s runs and is not ready: its log may say why.", namespace, p.name)
		}
	}
	return ""
}

// podOf reads the health of a pod.
func podOf(addon string, p *corev1.Pod) pod {
	seen := pod{
		name: p.Name, own: namedAfter(addon, p.ObjectMeta), trouble: unready.PodTrouble(p),
		ended: p.Status.Phase == corev1.PodFailed,
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			seen.ready = c.Status == corev1.ConditionTrue
		}
	}
	return seen
}

// credentialCause explains why the add-on agent has no credential for the hub yet; empty when it has one.
func credentialCause(p plan, results []result) string {
	for _, res := range slices.Concat(p.refused, results) {
		if !res.kubeconfig || res.served {
			continue
		}
		switch {
		case res.condition != nil && res.condition.Status == metav1.ConditionFalse:
			return fmt.Sprintf("Its credential for the hub is not there: %s.", strings.TrimRight(res.condition.Message, "."))
		case res.waits != "":
			return fmt.Sprintf("Its credential for the hub is not there yet: %s.", strings.TrimRight(res.waits, "."))
		default:
			return "Its credential for the hub is not there yet: its certificate request waits on the hub to be approved " +
				"and signed."
		}
	}
	if p.waits {
		return "Its credential for the hub is not there yet: the hub has not said for whom it is to be " +
			"(status.registrations[].kubeClient.subject)."
	}
	return ""
}

// likelyCause explains in one or two sentences what probably keeps the add-on agent from renewing its lease.
func likelyCause(f facts, p plan, results []result) string {
	onCluster := snapshotCause(f.snapshot, p.place.namespace)
	if gone := f.snapshot.namespace == presenceMissing || f.snapshot.namespace == presenceEnding; gone {
		return onCluster
	}
	credential := credentialCause(p, results)
	if credential != "" && onCluster != "" {
		return credential + " " + onCluster
	}
	return credential + onCluster
}
