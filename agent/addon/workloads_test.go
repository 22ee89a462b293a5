package addon

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

func TestWhenWorkloadsAreLookedAt(t *testing.T) {
	probed := func(status metav1.ConditionStatus, reason string) facts {
		f := addonWith()
		f.addon.Status.HealthCheck.Mode = addonv1beta1.HealthCheckModeCustomized
		f.addon.Status.Conditions = []metav1.Condition{{
			Type: "Available", Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(noon),
		}}
		return f
	}
	broken := func(change func(*facts)) facts {
		f := probed(metav1.ConditionFalse, "ProbeUnavailable")
		change(&f)
		return f
	}
	deleted := metav1.NewTime(noon)
	for name, tc := range map[string]struct {
		facts facts
		want  bool
	}{
		"an add-on that is gone":            {facts{}, false},
		"without a word of the hub":         {addonWith(), false},
		"the hub finds pods not ready":      {broken(func(*facts) {}), true},
		"no pod was reported":               {probed(metav1.ConditionUnknown, "NoProbeResult"), true},
		"all are ready":                     {probed(metav1.ConditionTrue, "ProbeAvailable"), false},
		"nothing was applied yet":           {probed(metav1.ConditionUnknown, "WorkNotApplied"), false},
		"the cluster is silent":             {probed(metav1.ConditionUnknown, "ManagedClusterLeaseUpdateStopped"), false},
		"the cluster is silent for the hub": {broken(func(f *facts) { f.clusterUnknown = true }), false},
		"it is on its way out":              {broken(func(f *facts) { f.addon.DeletionTimestamp = &deleted }), false},
		"a lease tells the health":          {broken(func(f *facts) { f.addon.Status.HealthCheck.Mode = "Lease" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			since, matter := workloadsUnready(tc.facts)
			assert.Equal(t, tc.want, matter)
			if tc.want {
				assert.True(t, noon.Equal(since))
			}
		})
	}
}

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
			target := workloadTarget{kindDeployment, "ns", "d"}
			seen := seenWorkload{created: noon, failure: tc.failure}
			text := workloadTrouble(target, seen, tc.pods)
			if p := unexplainedPod(tc.pods); text == "" && p != nil {
				text = eventTrouble(target, p, tc.events)
			}
			if text == "" {
				text = waitingTrouble(target, seen, tc.pods, noon)
			}
			if tc.says == "" {
				assert.Empty(t, text)
			}
			assert.Contains(t, text, tc.says)
		})
	}
	assert.Contains(t, waitingTrouble(workloadTarget{kindDaemonSet, "ns", "d"}, seenWorkload{created: noon}, nil,
		noon.Add(time.Minute)), "DaemonSet ns/d has no pods")
}

func TestWhichManifestsAreWorkloads(t *testing.T) {
	for raw, want := range map[string]workloadTarget{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"ns"}}`: {"Deployment", "ns", "d"},
		`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d","namespace":"ns"}}`:  {"DaemonSet", "ns", "d"},
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"}}`:                        {},
		`{"apiVersion":"example.com/v1","kind":"Deployment","metadata":{"name":"d"}}`:           {},
		`not json`: {},
		``:         {},
	} {
		target, ok := targetOf([]byte(raw))
		assert.Equal(t, want, target, raw)
		assert.Equal(t, want.kind != "", ok, raw)
	}
}

func TestWhenAWorkloadIsReady(t *testing.T) {
	deployment := func(replicas, ready int32) *appsv1.Deployment {
		return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To(replicas)},
			Status: appsv1.DeploymentStatus{ReadyReplicas: ready}}
	}
	assert.True(t, deploymentOf(deployment(2, 1)).ready, "as for the hub, one pod is enough")
	assert.True(t, deploymentOf(deployment(0, 0)).ready)
	assert.False(t, deploymentOf(deployment(1, 0)).ready)
	assert.True(t, daemonSetOf(&appsv1.DaemonSet{}).ready, "no node wants it")
	assert.False(t, daemonSetOf(&appsv1.DaemonSet{
		Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, NumberReady: 1},
	}).ready)
}

func TestLooksAtWorkloadsBecomeRareWhileNothingChanges(t *testing.T) {
	l := workloadInspection{pause: firstInspection}
	for _, want := range []time.Duration{4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second} {
		l.pause, l.text = l.pauseBefore(""), ptr.To("")
		assert.Equal(t, want, l.pause, "also while nothing can be said")
	}
	l.pause, l.text = l.pauseBefore("why"), ptr.To("why")
	assert.Equal(t, 5*time.Second, l.pause, "what is new may change again soon")
	for range 10 {
		l.pause = l.pauseBefore("why")
	}
	assert.Equal(t, 5*time.Minute, l.pause)
}

func TestTheConditionOfWorkloadsIsThereOnlyWhileThereIsSomethingToSay(t *testing.T) {
	f := addonWith()
	f.now = noon
	var conditions []metav1.Condition
	conclude := func(text *string) {
		f.workloads = text
		concludeWorkloads(f, &conditions)
	}
	conclude(ptr.To(""))
	require.Empty(t, conditions)
	conclude(ptr.To("why"))
	require.Len(t, conditions, 1)
	assert.Equal(t, names.ConditionWorkloadsReady, conditions[0].Type)
	assert.Equal(t, "why", conditions[0].Message)
	conclude(nil)
	require.Len(t, conditions, 1, "while nobody looked, it stays")
	conclude(ptr.To(""))
	require.Empty(t, conditions)
}
