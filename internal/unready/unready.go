package unready

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds of workloads.
const (
	KindDeployment = "Deployment"
	KindDaemonSet  = "DaemonSet"
)

// startTimeout is the time after which a pod that has not started is reported for that alone.
const startTimeout = time.Minute

// Target names a Deployment or a DaemonSet.
type Target struct{ Kind, Namespace, Name string }

// String names it in messages.
func (t Target) String() string { return t.Kind + " " + t.Namespace + "/" + t.Name }

// State is the observed state of a workload; its selector is nil if it was not found.
type State struct {
	Selector *metav1.LabelSelector
	Created  time.Time
	// Ready is set when it has the ready pods that the hub requires.
	Ready bool
	// Wanted and Have count its pods, and those of them that are ready.
	Wanted, Have int32
	// Failure explains why it has no pods, if its conditions do.
	Failure string
}

// Facts are what a workload that is not ready is judged by.
type Facts struct {
	Target
	State

	Pods []corev1.Pod
	Now  time.Time
}

// Explain says why a workload is not ready; empty where that is not known. events returns the warning Events about a
// pod, which are asked for only where the pod itself does not say what it lacks.
func (f Facts) Explain(events func(*corev1.Pod) []corev1.Event) string {
	f.Pods = present(f.Pods)
	text := trouble(f.Target, f.State, f.Pods)
	if pod := unexplained(f.Pods); text == "" && pod != nil {
		text = eventTrouble(f.Target, pod, events(pod))
	}
	if text == "" {
		text = waitingTrouble(f.Target, f.State, f.Pods, f.Now)
	}
	return text
}

// OfDeployment reads the state of a Deployment. Like the hub, it requires one ready pod.
func OfDeployment(d *appsv1.Deployment) State {
	w := State{Selector: d.Spec.Selector, Created: d.CreationTimestamp.Time, Wanted: 1, Have: d.Status.ReadyReplicas}
	if d.Spec.Replicas != nil {
		w.Wanted = *d.Spec.Replicas
	}
	w.Ready = w.Have >= 1 || w.Wanted == 0
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			w.Failure = Quote(c.Reason, c.Message)
		}
	}
	return w
}

// OfDaemonSet reads the state of a DaemonSet. It must be ready on all its nodes.
func OfDaemonSet(d *appsv1.DaemonSet) State {
	return State{
		Selector: d.Spec.Selector, Created: d.CreationTimestamp.Time,
		Ready:  d.Status.NumberReady == d.Status.DesiredNumberScheduled,
		Wanted: d.Status.DesiredNumberScheduled, Have: d.Status.NumberReady,
	}
}

// present returns the pods that have not ended and are not going, which replaced the others: an evicted pod stays until
// the garbage collector takes it. Where there are none it returns all.
func present(pods []corev1.Pod) []corev1.Pod {
	var all []corev1.Pod
	for i := range pods {
		ended := pods[i].Status.Phase == corev1.PodFailed || pods[i].Status.Phase == corev1.PodSucceeded
		if !ended && pods[i].DeletionTimestamp.IsZero() {
			all = append(all, pods[i])
		}
	}
	if len(all) == 0 {
		return pods
	}
	return all
}

// trouble explains why a workload is not ready, if its status or a pod does.
func trouble(target Target, seen State, pods []corev1.Pod) string {
	if seen.Failure != "" && len(pods) == 0 {
		return fmt.Sprintf("%s cannot make pods: %s. Grant or create what is missing there.", target, seen.Failure)
	}
	for i := range pods {
		p := &pods[i]
		said := PodTrouble(p)
		if !p.DeletionTimestamp.IsZero() || said == "" || isStarting(p) {
			continue
		}
		return fmt.Sprintf("%s is not ready. Pod %s/%s: %s. %s", target, p.Namespace, p.Name, said, podRemedy(p))
	}
	return ""
}

// isStarting reports whether a pod is pending without a known cause.
func isStarting(p *corev1.Pod) bool { return PodTrouble(p) == "it is pending" }

// unexplained returns a pending pod without a known cause; nil when there is none.
func unexplained(pods []corev1.Pod) *corev1.Pod {
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodPending && pods[i].DeletionTimestamp.IsZero() {
			return &pods[i]
		}
	}
	return nil
}

// eventTrouble describes the last of the Events about a pod; empty when there is none.
func eventTrouble(target Target, p *corev1.Pod, events []corev1.Event) string {
	var last *corev1.Event
	for i := range events {
		if last == nil || last.LastTimestamp.Before(&events[i].LastTimestamp) {
			last = &events[i]
		}
	}
	if last == nil {
		return ""
	}
	remedy := "Correct what the Event names."
	if last.Reason == "FailedMount" || last.Reason == "FailedAttachVolume" {
		remedy = "Create the Secret, ConfigMap or volume that is missing, or correct the volumes of the pod."
	}
	return fmt.Sprintf("%s is not ready. Pod %s/%s does not start: %s. %s", target, p.Namespace, p.Name,
		Quote(last.Reason, last.Message), remedy)
}

// waitingTrouble describes a workload that takes long without a known cause.
func waitingTrouble(target Target, seen State, pods []corev1.Pod, now time.Time) string {
	if len(pods) == 0 {
		if now.Before(seen.Created.Add(startTimeout)) {
			return ""
		}
		return fmt.Sprintf("%s has no pods: see what kubectl describe says about it on the cluster.", target)
	}
	for i := range pods {
		p := &pods[i]
		if now.Before(p.CreationTimestamp.Add(startTimeout)) || !p.DeletionTimestamp.IsZero() || PodReady(p) {
			continue
		}
		state := "runs and is not ready: its log and its readiness probe may say why"
		if p.Status.Phase == corev1.PodPending {
			state = "is pending for more than a minute: see what kubectl describe says about it on the cluster"
		}
		return fmt.Sprintf("%s is not ready. Pod %s/%s %s.", target, p.Namespace, p.Name, state)
	}
	return ""
}

// PodReady reports whether a pod is ready.
func PodReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// podRemedy returns the remedy for the problem of a pod.
func podRemedy(p *corev1.Pod) string {
	said := PodTrouble(p)
	switch {
	case strings.Contains(said, "no node takes it"):
		return "Add nodes that fit, or change resources, nodeSelector or tolerations, for templates in an " +
			"AddOnDeploymentConfig."
	case strings.Contains(said, "cannot be pulled"):
		return "Correct the image or its registry, or give the pods the imagePullSecret that they need."
	case strings.Contains(said, "crashes again and again"):
		return fmt.Sprintf("See why: kubectl logs -n %s %s --previous --all-containers, on the cluster.", p.Namespace, p.Name)
	case strings.Contains(said, "CreateContainerConfigError"):
		return "Create the Secret or ConfigMap that it names, or correct the pod."
	}
	return fmt.Sprintf("See kubectl describe pod -n %s %s on the cluster.", p.Namespace, p.Name)
}
