package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/e2e/cluster"
)

// WaitDeployment waits until all pods of a Deployment are of its newest version and available, and none else is left.
func WaitDeployment(ctx context.Context, c *cluster.Cluster, namespace, name string) error {
	return cluster.Until(ctx, "Deployment "+namespace+"/"+name+" on cluster "+c.Name, func(ctx context.Context) error {
		var found appsv1.Deployment
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &found); err != nil {
			return err
		}
		if status := found.Status; status.ObservedGeneration < found.Generation ||
			status.UpdatedReplicas != *found.Spec.Replicas || status.AvailableReplicas != *found.Spec.Replicas ||
			status.Replicas != *found.Spec.Replicas {
			return fmt.Errorf("%d pods, %d of them updated, %d available: %s", status.Replicas, status.UpdatedReplicas,
				status.AvailableReplicas, whyPods(ctx, c, namespace, found.Spec.Selector))
		}
		return nil
	})
}

// whyPods returns what the pods of a selector say, for the message of a failure.
func whyPods(ctx context.Context, c *cluster.Cluster, namespace string, selector *metav1.LabelSelector) string {
	pods, err := PodsOf(ctx, c, namespace, selector)
	if err != nil {
		return err.Error()
	}
	var parts []string
	for i := range pods {
		for _, s := range pods[i].Status.ContainerStatuses {
			switch {
			case s.State.Waiting != nil:
				parts = append(parts, pods[i].Name+": "+s.State.Waiting.Reason+" "+s.State.Waiting.Message)
			case !s.Ready:
				parts = append(parts, fmt.Sprintf("%s is not ready after %d restarts", pods[i].Name, s.RestartCount))
			}
		}
	}
	return strings.Join(parts, "; ")
}

// PodsOf returns the pods of a selector that are not being deleted.
func PodsOf(
	ctx context.Context, c *cluster.Cluster, namespace string, selector *metav1.LabelSelector,
) ([]corev1.Pod, error) {
	match, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("reading a selector: %w", err)
	}
	var list corev1.PodList
	labelled := client.MatchingLabelsSelector{Selector: match}
	if err := c.Client.List(ctx, &list, client.InNamespace(namespace), labelled); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// Pod returns the one pod with a label app of that value; an error when there is none or there are several.
func Pod(ctx context.Context, c *cluster.Cluster, namespace, app string) (*corev1.Pod, error) {
	pods, err := PodsOf(ctx, c, namespace, &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}})
	if err != nil {
		return nil, err
	}
	if len(pods) != 1 {
		return nil, fmt.Errorf("there are %d pods of %s/%s and not one", len(pods), namespace, app)
	}
	return &pods[0], nil
}

// Restarts returns how often the containers of a pod were restarted.
func Restarts(pod *corev1.Pod) int32 {
	restarts := int32(0)
	for _, s := range pod.Status.ContainerStatuses {
		restarts += s.RestartCount
	}
	return restarts
}

// WaitClusterAvailable waits until the hub reports that a cluster was accepted, has joined and is available.
func (f *Fleet) WaitClusterAvailable(ctx context.Context, name string) error {
	return cluster.Until(ctx, "ManagedCluster "+name+" to be available", func(ctx context.Context) error {
		var found clusterv1.ManagedCluster
		if err := f.Hub().Client.Get(ctx, client.ObjectKey{Name: name}, &found); err != nil {
			return err
		}
		for _, want := range []string{
			clusterv1.ManagedClusterConditionHubAccepted, clusterv1.ManagedClusterConditionJoined,
			clusterv1.ManagedClusterConditionAvailable,
		} {
			if err := IsTrue(found.Status.Conditions, want); err != nil {
				return err
			}
		}
		return nil
	})
}

// IsTrue returns nil when a condition is True, and otherwise what it is.
func IsTrue(conditions []metav1.Condition, name string) error {
	switch c := meta.FindStatusCondition(conditions, name); {
	case c == nil:
		return fmt.Errorf("condition %s is not set", name)
	case c.Status != metav1.ConditionTrue:
		return fmt.Errorf("condition %s is %s: %s: %s", name, c.Status, c.Reason, c.Message)
	}
	return nil
}

// AddOn reads an add-on of a cluster.
func (f *Fleet) AddOn(ctx context.Context, clusterName, name string) (*addonv1beta1.ManagedClusterAddOn, error) {
	var addOn addonv1beta1.ManagedClusterAddOn
	err := f.Hub().Client.Get(ctx, client.ObjectKey{Namespace: clusterName, Name: name}, &addOn)
	return &addOn, err
}

// WaitAddOn waits until an add-on of a cluster is available and its newest configuration is rolled out.
func (f *Fleet) WaitAddOn(ctx context.Context, clusterName, name string) error {
	return cluster.Until(ctx, "add-on "+name+" of cluster "+clusterName, func(ctx context.Context) error {
		addOn, err := f.AddOn(ctx, clusterName, name)
		if err != nil {
			return err
		}
		if err := IsTrue(addOn.Status.Conditions, "Available"); err != nil {
			return err
		}
		progressing := meta.FindStatusCondition(addOn.Status.Conditions, "Progressing")
		if progressing == nil {
			return errors.New("condition Progressing is not set")
		}
		if progressing.Reason != addonv1beta1.ProgressingReasonCompleted {
			return fmt.Errorf("condition Progressing is %s: %s", progressing.Reason, progressing.Message)
		}
		return nil
	})
}
