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
	"github.com/spokelet/spokelet/internal/pause"
	"github.com/spokelet/spokelet/internal/unready"
)

const (
	// maxWorkloads is the largest number of workloads of an add-on, and maxEvents of Events of one pod, that are read.
	maxWorkloads, maxEvents = 20, 20
	// maxWorks is the largest number of ManifestWorks of an add-on that are read.
	maxWorks = 20
)

// observeWorkloads reads from time to time the workloads of an add-on that the hub reports as not ready. Nothing is
// read, watched or cached while they are ready, and objects that the agent may not read are left out.
func (r *Reconciler) observeWorkloads(ctx context.Context, f *facts) {
	since, matter := workloadsUnready(*f)
	if !matter {
		r.workloads.Forget(f.name)
		f.workloads = new(string)
		return
	}
	last, ok := r.workloads.Get(f.name)
	switch {
	case !ok || !last.about.Equal(since):
		last = workloadInspection{about: since, at: f.now, pause: firstInspection}
	case !f.now.Before(last.due()):
		last = r.inspectWorkloads(ctx, *f, last)
	}
	r.workloads.Put(f.name, last)
	f.workloads, f.nextInspection = last.text, last.due()
}

// inspectWorkloads returns a new inspection.
func (r *Reconciler) inspectWorkloads(ctx context.Context, f facts, last workloadInspection) workloadInspection {
	next := workloadInspection{about: last.about, targets: last.targets, at: f.now, text: new(string)}
	if last.text == nil || *last.text == "" {
		next.targets = r.workloadTargets(ctx, f)
	}
	reader := r.sides[placeOf(f).side].GetAPIReader()
	for _, target := range next.targets {
		if *next.text = inspectWorkload(ctx, reader, target, f.now); *next.text != "" {
			break
		}
	}
	next.pause = last.pauseBefore(*next.text)
	return next
}

// pauseBefore returns the pause after an inspection with this text; it grows while nothing changes.
func (l workloadInspection) pauseBefore(text string) time.Duration {
	if l.text != nil && *l.text != text {
		return minRecheck
	}
	return pause.Growing{First: firstInspection, Last: maxRecheck}.Next(l.pause)
}

// workloadTargets reads the workloads of an add-on from its ManifestWorks on the hub. The cache of an agent that does
// registration only does not have them.
func (r *Reconciler) workloadTargets(ctx context.Context, f facts) []unready.Target {
	var works workv1.ManifestWorkList
	err := r.Hub.GetAPIReader().List(ctx, &works, client.InNamespace(f.cluster), client.Limit(maxWorks),
		client.MatchingLabels{names.LabelAddonName: f.name})
	if err != nil {
		logUnreadable(ctx, "ManifestWork", err)
		return nil
	}
	var targets []unready.Target
	for i := range works.Items {
		for _, manifest := range works.Items[i].Spec.Workload.Manifests {
			if target, ok := targetOf(manifest.Raw); ok && len(targets) < maxWorkloads {
				targets = append(targets, target)
			}
		}
	}
	return targets
}

// inspectWorkload explains why a workload is not ready; empty when it is ready or the cause is unknown.
func inspectWorkload(ctx context.Context, reader client.Reader, target unready.Target, now time.Time) string {
	one := []client.ListOption{client.InNamespace(target.Namespace), client.MatchingFields{"metadata.name": target.Name}}
	var seen unready.State
	var err error
	if target.Kind == unready.KindDaemonSet {
		var list appsv1.DaemonSetList
		if err = reader.List(ctx, &list, one...); err == nil && len(list.Items) == 1 {
			seen = unready.OfDaemonSet(&list.Items[0])
		}
	} else {
		var list appsv1.DeploymentList
		if err = reader.List(ctx, &list, one...); err == nil && len(list.Items) == 1 {
			seen = unready.OfDeployment(&list.Items[0])
		}
	}
	if err != nil {
		logUnreadable(ctx, target.Kind, err)
		return ""
	}
	if seen.Selector == nil || seen.Ready {
		return ""
	}
	selector, err := metav1.LabelSelectorAsSelector(seen.Selector)
	if err != nil {
		logUnreadable(ctx, target.Kind, fmt.Errorf("reading its selector: %w", err))
		return ""
	}
	var pods corev1.PodList
	err = reader.List(ctx, &pods, client.InNamespace(target.Namespace), client.Limit(maxListed),
		client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		logUnreadable(ctx, "Pod", err)
		return ""
	}
	warnings := func(pod *corev1.Pod) []corev1.Event { return warningsOf(ctx, reader, pod) }
	return unready.Facts{Target: target, State: seen, Pods: pods.Items, Now: now}.Explain(warnings)
}

// warningsOf lists the warning Events of a pod.
func warningsOf(ctx context.Context, reader client.Reader, pod *corev1.Pod) []corev1.Event {
	var events corev1.EventList
	err := reader.List(ctx, &events, client.InNamespace(pod.Namespace), client.Limit(maxEvents),
		client.MatchingFields{"involvedObject.uid": string(pod.UID), "type": corev1.EventTypeWarning})
	if err != nil {
		logUnreadable(ctx, "Event", err)
		return nil
	}
	return events.Items
}

func logUnreadable(ctx context.Context, kind string, err error) {
	log.FromContext(ctx).V(1).Info("cannot look for the cause", "kind", kind, "error", err.Error())
}
