package unready_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/spokelet/spokelet/internal/unready"
)

// noon is the time of the tests.
var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// onePod is a pod that was created some time before noon.
func onePod(age time.Duration, change func(*corev1.Pod)) []corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "p", CreationTimestamp: metav1.NewTime(noon.Add(-age)),
	}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	if change != nil {
		change(&p)
	}
	return []corev1.Pod{p}
}

func TestWhyAWorkloadIsNotReady(t *testing.T) {
	const start = "Deployment ns/d is not ready. Pod ns/p"
	waiting := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Image: "i", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "m"},
			}}}
		}
	}
	mount := corev1.Event{Reason: "FailedMount", Message: `secret "s" not found`, LastTimestamp: metav1.NewTime(noon)}
	older := corev1.Event{Reason: "FailedCreatePodSandBox", Message: "x", LastTimestamp: metav1.NewTime(noon.Add(-time.Minute))}
	leaving := metav1.NewTime(noon)
	for name, tc := range map[string]struct {
		pods    []corev1.Pod
		failure string
		events  []corev1.Event
		says    string
	}{
		"it has just been created":   {},
		"its pods cannot be made":    {failure: "FailedCreate: quota", says: "Deployment ns/d cannot make pods: FailedCreate: quota."},
		"a pod starts":               {pods: onePod(time.Second, nil)},
		"a pod starts for long":      {pods: onePod(2*time.Minute, nil), says: start + " is pending for more than a minute"},
		"a volume cannot be mounted": {pods: onePod(time.Second, nil), events: []corev1.Event{older, mount}, says: start + ` does not start: FailedMount: secret "s" not found. Create the Secret, ConfigMap or volume`},
		"another Event warns":        {pods: onePod(time.Second, nil), events: []corev1.Event{older}, says: start + " does not start: FailedCreatePodSandBox: x. Correct what the Event names."},
		"an image cannot be pulled":  {pods: onePod(time.Second, waiting("ErrImagePull")), says: start + ": image i of container c cannot be pulled: ErrImagePull: m. Correct the image"},
		"a container crashes":        {pods: onePod(time.Second, waiting("CrashLoopBackOff")), says: "See why: kubectl logs -n ns p --previous"},
		"a key is missing":           {pods: onePod(time.Second, waiting("CreateContainerConfigError")), says: "Create the Secret or ConfigMap that it names"},
		"another reason is told":     {pods: onePod(time.Second, waiting("Odd")), says: start + ": container c does not start: Odd: m. See kubectl describe pod"},
		"no node takes it": {pods: onePod(time.Second, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}}
		}), says: "no node takes it: Unschedulable. Add nodes that fit"},
		"a pod on its way out is old":  {pods: onePod(time.Hour, func(p *corev1.Pod) { waiting("ErrImagePull")(p); p.DeletionTimestamp = &leaving })},
		"a pod runs and was not ready": {pods: onePod(time.Hour, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), says: start + " runs and is not ready: its log"},
		"a pod has just begun to run":  {pods: onePod(time.Second, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })},
	} {
		t.Run(name, func(t *testing.T) {
			target := unready.Target{Kind: unready.KindDeployment, Namespace: "ns", Name: "d"}
			seen := unready.State{Created: noon, Failure: tc.failure}
			text := unready.Facts{Target: target, State: seen, Pods: tc.pods, Now: noon}.Explain(
				func(*corev1.Pod) []corev1.Event { return tc.events })
			if tc.says == "" {
				assert.Empty(t, text)
			}
			assert.Contains(t, text, tc.says)
		})
	}
	daemons := unready.Target{Kind: unready.KindDaemonSet, Namespace: "ns", Name: "d"}
	text := unready.Facts{Target: daemons, State: unready.State{Created: noon}, Now: noon.Add(time.Minute)}.Explain(nil)
	assert.Contains(t, text, "DaemonSet ns/d has no pods")
}

func TestWhenAWorkloadIsReady(t *testing.T) {
	deployment := func(replicas, ready int32) *appsv1.Deployment {
		return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To(replicas)},
			Status: appsv1.DeploymentStatus{ReadyReplicas: ready}}
	}
	assert.True(t, unready.OfDeployment(deployment(2, 1)).Ready, "as for the hub, one pod is enough")
	assert.True(t, unready.OfDeployment(deployment(0, 0)).Ready)
	assert.False(t, unready.OfDeployment(deployment(1, 0)).Ready)
	assert.True(t, unready.OfDaemonSet(&appsv1.DaemonSet{}).Ready, "no node wants it")
	assert.False(t, unready.OfDaemonSet(&appsv1.DaemonSet{
		Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, NumberReady: 1},
	}).Ready)
}

func TestQuoteIsShortAndOneLine(t *testing.T) {
	long := unready.Quote("Reason", strings.Repeat("ä\n", 1000))
	assert.Less(t, len([]rune(long)), 320)
	assert.NotContains(t, long, "\n")
	assert.Equal(t, "Reason", unready.Quote("Reason", ""))
	assert.Equal(t, "text", unready.Quote("", "text."))
}

// A node that ran short of memory months ago left evicted pods, which stay until the garbage collector takes them. They
// do not say why the pod that replaced them does not run.
func TestAPodThatWasReplacedDoesNotExplainAnything(t *testing.T) {
	pod := func(name string, status corev1.PodStatus) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "logs", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
			Status:     status,
		}
	}
	f := unready.Facts{
		Target: unready.Target{Kind: unready.KindDeployment, Namespace: "logs", Name: "agent"}, Now: noon,
		State: unready.OfDeployment(&appsv1.Deployment{}),
		Pods: []corev1.Pod{
			pod("agent-1", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}),
			pod("agent-2", corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
				Name: "agent", Image: "registry.local/logs:1.10",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
			}}}),
		},
	}
	said := f.Explain(func(*corev1.Pod) []corev1.Event { return nil })
	assert.Contains(t, said, "agent-2")
	assert.Contains(t, said, "cannot be pulled")
}
