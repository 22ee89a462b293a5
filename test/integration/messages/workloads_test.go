package messages_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

const workload = `
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: %[1]s}
spec:
  addonName: %[1]s
  agentSpec:
    workload:
      manifests:
      - {apiVersion: v1, kind: Namespace, metadata: {name: %[1]s-elsewhere}}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: runner, namespace: %[1]s-elsewhere}
        spec:
          selector: {matchLabels: {app: %[1]s}}
          template:
            metadata: {labels: {app: %[1]s}}
            spec: {containers: [{name: main, image: "registry.example.com/main:v1"}]}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: %[1]s}
spec:
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: %[1]s}}
`

// podOf waits for the pod of a workload and returns it. No kubelet runs here: the test plays it.
func podOf(t *testing.T, addOn string) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	suite.Eventually(t, func() error {
		err := plane.Client.List(t.Context(), &pods, client.InNamespace(addOn+"-elsewhere"))
		if err == nil && len(pods.Items) == 0 {
			return fmt.Errorf("add-on %s has no pod", addOn)
		}
		return err
	})
	return &pods.Items[0]
}

// becomes writes the status of a pod.
func becomes(t *testing.T, pod *corev1.Pod, change func(*corev1.PodStatus)) {
	t.Helper()
	suite.Eventually(t, func() error {
		if err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		change(&pod.Status)
		return plane.Client.Status().Update(t.Context(), pod)
	})
}

// waits is a container that does not run.
func waits(reason, message string) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		s.Phase = corev1.PodPending
		s.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", Image: "registry.example.com/main:v1",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	}
}

// TestAWorkloadThatIsNotReadySaysWhyOnTheAddOn plays, one after the other, what keeps a pod from running, in a
// namespace that is not that of the add-on agent.
func TestAWorkloadThatIsNotReadySaysWhyOnTheAddOn(t *testing.T) {
	t.Parallel()
	const name = "runner"
	apply(t, workload, name)
	install(t, name, nil)
	pod := podOf(t, name)
	told := func(texts ...string) {
		t.Helper()
		texts = append([]string{"Deployment runner-elsewhere/runner is not ready. Pod runner-elsewhere/" + pod.Name}, texts...)
		says(t, name, names.ConditionWorkloadsReady, metav1.ConditionFalse, "WorkloadNotReady", texts...)
		says(t, name, "Available", metav1.ConditionFalse, addonv1beta1.AddonAvailableReasonProbeUnavailable,
			append(texts, "Deployment runner-elsewhere/runner has ")...)
	}
	becomes(t, pod, func(s *corev1.PodStatus) {
		s.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: "Unschedulable", Message: "0/3 nodes are available"}}
	})
	told(": it is pending, no node takes it: Unschedulable: 0/3 nodes are available. Add nodes that fit")

	becomes(t, pod, func(s *corev1.PodStatus) { s.Conditions = nil; waits("ContainerCreating", "")(s) })
	require.NoError(t, plane.Client.Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name + ".mount"},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		},
		Type: corev1.EventTypeWarning, Reason: "FailedMount", LastTimestamp: metav1.Now(),
		Message: `MountVolume.SetUp failed for volume "config" : configmap "settings" not found`,
	}))
	told(` does not start: FailedMount: MountVolume.SetUp failed for volume "config" : configmap "settings" not found. Create`)

	becomes(t, pod, waits("CreateContainerConfigError", `secret "password" not found`))
	told(`: container main does not start: CreateContainerConfigError: secret "password" not found. Create the Secret`)

	becomes(t, pod, waits("ErrImagePull", "no such image"))
	told(": image registry.example.com/main:v1 of container main cannot be pulled: ErrImagePull: no such image. Correct the image")

	becomes(t, pod, waits("CrashLoopBackOff", "back-off"))
	told(": container main crashes again and again", "kubectl logs -n runner-elsewhere "+pod.Name+" --previous")

	becomes(t, pod, func(s *corev1.PodStatus) {
		s.Phase = corev1.PodRunning
		s.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		s.ContainerStatuses[0].Ready = true
		s.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
		}
	})
	says(t, name, "Available", metav1.ConditionTrue, addonv1beta1.AddonAvailableReasonProbeAvailable)
	suite.Eventually(t, func() error {
		addOn, err := plane.AddOns.GetAddOn(t.Context(), types.NamespacedName{Namespace: home, Name: name})
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(addOn.Status.Conditions, names.ConditionWorkloadsReady); c != nil {
			return fmt.Errorf("the condition is there: %s", c.Message)
		}
		return nil
	})
}

func TestAWorkloadThatCannotMakePodsSaysWhyOnTheAddOn(t *testing.T) {
	t.Parallel()
	const name = "podless"
	require.NoError(t, plane.Client.Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-elsewhere"},
	}))
	require.NoError(t, plane.Client.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: name + "-elsewhere", Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}))
	apply(t, workload, name)
	install(t, name, nil)
	says(t, name, names.ConditionWorkloadsReady, metav1.ConditionFalse, "WorkloadNotReady",
		"Deployment podless-elsewhere/runner cannot make pods: FailedCreate: ", "exceeded quota: none",
		"Grant or create what is missing there.")
}
