package addon

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// reasonNotReady is the reason of names.ConditionWorkloadsReady.
	reasonNotReady = "WorkloadNotReady"
	// startTimeout is the time after which a pod that has not started is reported for that alone.
	startTimeout = time.Minute
)

// seenWorkload is the observed state of a workload; its selector is nil if it was not found.
type seenWorkload struct {
	selector *metav1.LabelSelector
	created  time.Time
	// ready is set when it has the ready pods that the hub requires.
	ready bool
	// failure explains why it has no pods, if its conditions do.
	failure string
}

// workloadsUnready returns the time since which the hub reports workloads of the add-on as not ready or without a
// probe result, and whether it does. Every hub that probes workloads uses these reasons.
func workloadsUnready(f facts) (time.Time, bool) {
	if f.addon == nil || healthFromLease(f) || f.clusterUnknown || !f.addon.DeletionTimestamp.IsZero() {
		return time.Time{}, false
	}
	c := meta.FindStatusCondition(f.addon.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	if c == nil || c.Status == metav1.ConditionTrue ||
		(c.Reason != addonv1beta1.AddonAvailableReasonProbeUnavailable &&
			c.Reason != addonv1beta1.AddonAvailableReasonNoProbeResult) {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// concludeWorkloads sets the condition that explains why workloads are not ready. It is removed when the cause is
// unknown, and stays before the first inspection.
func concludeWorkloads(f facts, conditions *[]metav1.Condition) {
	switch {
	case f.workloads == nil:
		return
	case *f.workloads == "":
		meta.RemoveStatusCondition(conditions, names.ConditionWorkloadsReady)
		return
	}
	reconcile.SetCondition(conditions, metav1.Condition{
		Type: names.ConditionWorkloadsReady, Status: metav1.ConditionFalse, Reason: reasonNotReady, Message: *f.workloads,
	}, f.now)
}

// targetOf returns the workload of a manifest; false for other objects.
func targetOf(raw []byte) (workloadTarget, bool) {
	var object metav1.PartialObjectMetadata
	if json.Unmarshal(raw, &object) != nil || object.APIVersion != appsv1.SchemeGroupVersion.String() ||
		(object.Kind != kindDeployment && object.Kind != kindDaemonSet) {
		return workloadTarget{}, false
	}
	return workloadTarget{object.Kind, object.Namespace, object.Name}, true
}

// deploymentOf reads the state of a Deployment. Like the hub, it requires one ready pod.
func deploymentOf(d *appsv1.Deployment) seenWorkload {
	w := seenWorkload{selector: d.Spec.Selector, created: d.CreationTimestamp.Time}
	w.ready = d.Status.ReadyReplicas >= 1 || (d.Spec.Replicas != nil && *d.Spec.Replicas == 0)
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			w.failure = quote(c.Reason, c.Message)
		}
	}
	return w
}

// daemonSetOf reads the state of a DaemonSet. It must be ready on all its nodes.
func daemonSetOf(d *appsv1.DaemonSet) seenWorkload {
	return seenWorkload{
		selector: d.Spec.Selector, created: d.CreationTimestamp.Time,
		ready: d.Status.NumberReady == d.Status.DesiredNumberScheduled,
	}
}

// workloadTrouble explains why a workload is not ready, if its status or a pod does.
func workloadTrouble(target workloadTarget, seen seenWorkload, pods []corev1.Pod) string {
	if seen.failure != "" && len(pods) == 0 {
		return fmt.Sprintf("%s cannot make pods: %s. Grant or create what is missing there.", target, seen.failure)
	}
	for i := range pods {
		p := &pods[i]
		trouble := podTrouble(p)
		if !p.DeletionTimestamp.IsZero() || trouble == "" || isStarting(p) {
			continue
		}
		return fmt.Sprintf("%s is not ready. Pod %s/%s: %s. %s", target, p.Namespace, p.Name, trouble, podRemedy(p))
	}
	return ""
}

// isStarting reports whether a pod is pending without a known cause.
func isStarting(p *corev1.Pod) bool { return podTrouble(p) == "it is pending" }

// unexplainedPod returns a pending pod without a known cause; nil when there is none.
func unexplainedPod(pods []corev1.Pod) *corev1.Pod {
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodPending && pods[i].DeletionTimestamp.IsZero() {
			return &pods[i]
		}
	}
	return nil
}

// eventTrouble describes the last of the Events about a pod; empty when there is none.
func eventTrouble(target workloadTarget, p *corev1.Pod, events []corev1.Event) string {
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
		quote(last.Reason, last.Message), remedy)
}

// waitingTrouble describes a workload that takes long without a known cause.
func waitingTrouble(target workloadTarget, seen seenWorkload, pods []corev1.Pod, now time.Time) string {
	if len(pods) == 0 {
		if now.Before(seen.created.Add(startTimeout)) {
			return ""
		}
		return fmt.Sprintf("%s has no pods: see what kubectl describe says about it on the cluster.", target)
	}
	for i := range pods {
		p := &pods[i]
		if now.Before(p.CreationTimestamp.Add(startTimeout)) || !p.DeletionTimestamp.IsZero() || podReady(p) {
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

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// podRemedy returns the remedy for the problem of a pod.
func podRemedy(p *corev1.Pod) string {
	trouble := podTrouble(p)
	switch {
	case strings.Contains(trouble, "no node takes it"):
		return "Add nodes that fit, or change resources, nodeSelector or tolerations, for templates in an " +
			"AddOnDeploymentConfig."
	case strings.Contains(trouble, "cannot be pulled"):
		return "Correct the image or its registry, or give the pods the imagePullSecret that they need."
	case strings.Contains(trouble, "crashes again and again"):
		return fmt.Sprintf("See why: kubectl logs -n %s %s --previous --all-containers, on the cluster.", p.Namespace, p.Name)
	case strings.Contains(trouble, "CreateContainerConfigError"):
		return "Create the Secret or ConfigMap that it names, or correct the pod."
	}
	return fmt.Sprintf("See kubectl describe pod -n %s %s on the cluster.", p.Namespace, p.Name)
}
