package main

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// podInterval is how often the pods of a cluster are looked at.
	podInterval = 200 * time.Millisecond
	// image is the image of the add-on web, without its version.
	image = "registry.example.com/web"
)

// pods writes the status of pods as kubelets would. The Deployments and Jobs of the fleet are run by the controllers of
// its control planes.
type pods struct {
	mu sync.Mutex
	// missing is the image that the cluster of name failing cannot pull.
	missing string
	// held reports that pods of Jobs do not end.
	held bool
	all  sync.WaitGroup
	stop context.CancelFunc
}

// play starts to write the status of pods on clusters; the caller must call end.
func (p *pods) play(ctx context.Context, clusters []*fleet.Cluster) {
	ctx, p.stop = context.WithCancel(ctx)
	for _, cluster := range clusters {
		p.all.Go(func() {
			ticker := time.NewTicker(podInterval)
			defer ticker.Stop()
			for {
				// What fails is tried again; a step that depends on it does not come true and reports the state.
				_ = p.pass(ctx, cluster)
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
			}
		})
	}
}

// end stops play and waits for its end.
func (p *pods) end() {
	if p.stop != nil {
		p.stop()
	}
	p.all.Wait()
}

// withhold lets the cluster of name failing not pull an image; an empty image lets it pull all.
func (p *pods) withhold(image string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missing = image
}

// hold lets the pods of Jobs run until it is called with false.
func (p *pods) hold(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
}

func (p *pods) pass(ctx context.Context, cluster *fleet.Cluster) error {
	var list corev1.PodList
	if err := cluster.Client.List(ctx, &list, client.InNamespace(names.NamespaceAgentAddon)); err != nil {
		return err
	}
	p.mu.Lock()
	missing, held := p.missing, p.held
	p.mu.Unlock()
	if cluster.Name != failing {
		missing = ""
	}
	var errs []error
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Spec.Containers[0].Name == agentName {
			continue // Its program runs, and its health is a Lease.
		}
		if status, changed := podStatus(pod, missing, held); changed {
			pod.Status = status
			errs = append(errs, cluster.Client.Status().Update(ctx, pod))
		}
	}
	return errors.Join(errs...)
}

// podStatus returns the status that a kubelet would write for a pod of one container, and whether it differs.
func podStatus(pod *corev1.Pod, missing string, held bool) (corev1.PodStatus, bool) {
	phase, reason := corev1.PodRunning, ""
	owner := metav1.GetControllerOf(pod)
	switch {
	case pod.Spec.Containers[0].Image == missing:
		phase, reason = corev1.PodPending, "ImagePullBackOff"
	case owner != nil && owner.Kind == "Job" && !held:
		phase = corev1.PodSucceeded
	}
	container := corev1.ContainerStatus{Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image}
	ready := corev1.ConditionFalse
	switch phase {
	case corev1.PodPending:
		message := `Back-off pulling image "` + missing + `": not found`
		container.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	case corev1.PodSucceeded:
		container.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed"}
	default:
		ready = corev1.ConditionTrue
		container.Ready, container.State.Running = true, &corev1.ContainerStateRunning{}
	}
	had := ""
	if statuses := pod.Status.ContainerStatuses; len(statuses) > 0 && statuses[0].State.Waiting != nil {
		had = statuses[0].State.Waiting.Reason
	}
	if len(pod.Status.ContainerStatuses) > 0 && pod.Status.Phase == phase && had == reason {
		return pod.Status, false
	}
	return corev1.PodStatus{
		Phase: phase, ContainerStatuses: []corev1.ContainerStatus{container},
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: ready},
			{Type: corev1.ContainersReady, Status: ready},
		},
	}, true
}
