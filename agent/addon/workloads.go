package addon

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	// maxWorkloads is how many workloads of an add-on are looked at, and maxEvents how many Events about one pod.
	maxWorkloads, maxEvents = 20, 20
	// maxWorks is how many ManifestWorks of an add-on are read.
	maxWorks = 20
)

// workloadLook is one look at the workloads of an add-on.
type workloadLook struct {
	// about is since when the hub says that they are not ready.
	about time.Time
	// targets are the workloads in the ManifestWorks of the add-on; nil when they are to be read.
	targets []workloadTarget
	// text is why they are not ready, empty when nothing can be said; nil while nobody looked.
	text *string
	// pause is how long after at the next look is due.
	at    time.Time
	pause time.Duration
}

// due is when the next look is.
func (l workloadLook) due() time.Time { return l.at.Add(l.pause) }

// observeWorkloads looks at the workloads of an add-on that the hub finds not ready, now and then. Nothing is read
// while they are ready, nothing is watched or cached for it, and what may not be read is left out.
func (r *Reconciler) observeWorkloads(ctx context.Context, f *facts) {
	since, matter := workloadsMatter(*f)
	if !matter {
		r.workloads.Delete(f.name)
		f.workloads = new(string)
		return
	}
	kept, _ := r.workloads.Load(f.name)
	last, ok := kept.(workloadLook)
	switch {
	case !ok || !last.about.Equal(since):
		last = workloadLook{about: since, at: f.now, pause: firstLook}
	case !f.now.Before(last.due()):
		last = r.lookAtWorkloads(ctx, *f, last)
	}
	r.workloads.Store(f.name, last)
	f.workloads, f.lookAgain = last.text, last.due()
}

// lookAtWorkloads looks, and returns the look with the pause until the next one.
func (r *Reconciler) lookAtWorkloads(ctx context.Context, f facts, last workloadLook) workloadLook {
	next := workloadLook{about: last.about, targets: last.targets, at: f.now, text: new(string)}
	if last.text == nil || *last.text == "" {
		next.targets = r.workloadTargets(ctx, f)
	}
	reader := r.sides[placeOf(f).side].GetAPIReader()
	for _, target := range next.targets {
		if *next.text = lookAtWorkload(ctx, reader, target, f.now); *next.text != "" {
			break
		}
	}
	next.pause = last.pauseBefore(*next.text)
	return next
}

// pauseBefore is how long the look after one that saw text is put off: longer and longer while nothing changes.
func (l workloadLook) pauseBefore(text string) time.Duration {
	if l.text != nil && *l.text != text {
		return againFirst
	}
	return min(2*l.pause, againLast)
}

// workloadTargets reads from the hub which workloads an add-on consists of. The works are not in the cache of an agent
// that does registration only.
func (r *Reconciler) workloadTargets(ctx context.Context, f facts) []workloadTarget {
	var works workv1.ManifestWorkList
	err := r.Hub.GetAPIReader().List(ctx, &works, client.InNamespace(f.cluster), client.Limit(maxWorks),
		client.MatchingLabels{names.LabelAddonName: f.name})
	if err != nil {
		cannotLook(ctx, "ManifestWork", err)
		return nil
	}
	var targets []workloadTarget
	for i := range works.Items {
		for _, manifest := range works.Items[i].Spec.Workload.Manifests {
			if target, ok := targetOf(manifest.Raw); ok && len(targets) < maxWorkloads {
				targets = append(targets, target)
			}
		}
	}
	return targets
}

// lookAtWorkload says why a workload is not ready; empty when it is, or when nothing can be said.
func lookAtWorkload(ctx context.Context, reader client.Reader, target workloadTarget, now time.Time) string {
	one := []client.ListOption{client.InNamespace(target.namespace), client.MatchingFields{"metadata.name": target.name}}
	var seen seenWorkload
	var err error
	if target.kind == kindDaemonSet {
		var list appsv1.DaemonSetList
		if err = reader.List(ctx, &list, one...); err == nil && len(list.Items) == 1 {
			seen = daemonSetOf(&list.Items[0])
		}
	} else {
		var list appsv1.DeploymentList
		if err = reader.List(ctx, &list, one...); err == nil && len(list.Items) == 1 {
			seen = deploymentOf(&list.Items[0])
		}
	}
	if err != nil {
		cannotLook(ctx, target.kind, err)
		return ""
	}
	if seen.selector == nil || seen.ready {
		return ""
	}
	selector, err := metav1.LabelSelectorAsSelector(seen.selector)
	if err != nil {
		cannotLook(ctx, target.kind, fmt.Errorf("reading its selector: %w", err))
		return ""
	}
	var pods corev1.PodList
	err = reader.List(ctx, &pods, client.InNamespace(target.namespace), client.Limit(maxLook),
		client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		cannotLook(ctx, "Pod", err)
		return ""
	}
	text := workloadTrouble(target, seen, pods.Items)
	if pod := silentPod(pods.Items); text == "" && pod != nil {
		text = eventTrouble(target, pod, warningsOf(ctx, reader, pod))
	}
	if text == "" {
		text = waitingTrouble(target, seen, pods.Items, now)
	}
	return text
}

// warningsOf lists Events that warn about a pod.
func warningsOf(ctx context.Context, reader client.Reader, pod *corev1.Pod) []corev1.Event {
	var events corev1.EventList
	err := reader.List(ctx, &events, client.InNamespace(pod.Namespace), client.Limit(maxEvents),
		client.MatchingFields{"involvedObject.uid": string(pod.UID), "type": corev1.EventTypeWarning})
	if err != nil {
		cannotLook(ctx, "Event", err)
		return nil
	}
	return events.Items
}

func cannotLook(ctx context.Context, kind string, err error) {
	log.FromContext(ctx).V(1).Info("cannot look for the cause", "kind", kind, "error", err.Error())
}
