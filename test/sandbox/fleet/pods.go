package fleet

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podsEvery is how often RunPods looks at the pods.
const podsEvery = 100 * time.Millisecond

// RunPods plays the kubelets of a cluster until ctx ends: the pods of a namespace run and are ready as soon as may
// allows it; nil allows all. The log is told what fails.
func (c *Cluster) RunPods(ctx context.Context, namespace string, may func(*corev1.Pod) bool, log io.Writer) {
	for Pause(ctx, podsEvery) {
		if err := c.runPods(ctx, namespace, may); err != nil && ctx.Err() == nil {
			fmt.Fprintf(log, "the kubelets of %s: %v\n", c.Name, err)
		}
	}
}

func (c *Cluster) runPods(ctx context.Context, namespace string, may func(*corev1.Pod) bool) error {
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		waits := pod.Status.Phase != corev1.PodRunning && pod.DeletionTimestamp == nil
		if !waits || may != nil && !may(pod) {
			continue
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		err := c.Client.Status().Update(ctx, pod)
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("letting pod %s run: %w", pod.Name, err)
		}
	}
	return nil
}
