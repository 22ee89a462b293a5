package addon

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/lease"
)

// waits returns a pod with one container that waits.
func waits(name, reason, message string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "agent", Image: "example.com/a:1",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}},
	}
}

func TestSceneCause(t *testing.T) {
	crashed := waits("hello-0", "CrashLoopBackOff", "back-off 5m0s restarting failed container")
	crashed.Status.ContainerStatuses[0].RestartCount = 7
	crashed.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
		ExitCode: 1, Reason: "Error", Message: "no such\nfile",
	}
	unscheduled := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "hello-0"},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available.",
		}}},
	}
	running := func(name string, ready corev1.ConditionStatus) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
		}}
	}
	evicted := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "hello-old"}, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"},
	}
	deployment := func(name string, replicas int32) appsv1.Deployment {
		return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
	}
	own := deployment("hello-agent", 1)
	refused := deployment("hello-agent", 1)
	refused.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: "True", Reason: "FailedCreate", Message: "exceeded quota",
	}}
	tests := map[string]struct {
		namespace   presence
		blind       bool
		pods        []corev1.Pod
		deployments []appsv1.Deployment
		daemons     []appsv1.DaemonSet
		want        string
	}{
		"a missing namespace":        {namespace: presenceMissing, want: "Namespace ns does not exist."},
		"a namespace on its way out": {namespace: presenceEnding, want: "Namespace ns is being deleted."},
		"nothing that should run":    {want: "There is no Deployment or DaemonSet in namespace ns."},
		"nothing that may be read":   {blind: true},
		"a pod that no node takes":   {pods: []corev1.Pod{unscheduled}, want: "Pod ns/hello-0: it is pending, no node takes it: Unschedulable: 0/3 nodes are available."},
		"an image that is not there": {pods: []corev1.Pod{waits("hello-0", "ErrImagePull", "not found")}, want: "Pod ns/hello-0: image example.com/a:1 of container agent cannot be pulled: ErrImagePull: not found."},
		"a crash loop, without a count": {
			pods: []corev1.Pod{crashed},
			want: "Pod ns/hello-0: container agent crashes again and again, the last time with exit code 1: Error: no such file.",
		},
		"a Secret that is missing": {
			pods: []corev1.Pod{waits("hello-0", "CreateContainerConfigError", `secret "x" not found`)},
			want: `Pod ns/hello-0: container agent does not start: CreateContainerConfigError: secret "x" not found.`,
		},
		"a pod that is being made": {
			pods: []corev1.Pod{waits("hello-0", "ContainerCreating", "")}, want: "Pod ns/hello-0: it is pending.",
		},
		"the pod with the name of the add-on comes first": {
			pods: []corev1.Pod{waits("other-0", "ErrImagePull", "x"), waits("hello-0", "ErrImagePull", "y")},
			want: "Pod ns/hello-0: image example.com/a:1 of container agent cannot be pulled: ErrImagePull: y.",
		},
		"the trouble of others is not ours while our own pod runs": {
			pods:        []corev1.Pod{waits("other-0", "ErrImagePull", "x"), running("hello-0", "True")},
			deployments: []appsv1.Deployment{own},
			want:        "Pod ns/hello-0 runs: its log may say why it does not renew the lease.",
		},
		"a pod of another name may be another's": {
			pods: []corev1.Pod{waits("other-0", "ErrImagePull", "x")},
			want: "No pod in namespace ns bears the name of the add-on. Pod other-0, which may be another's: " +
				"image example.com/a:1 of container agent cannot be pulled: ErrImagePull: x.",
		},
		"a pod that failed long ago is not told beside one that runs": {
			pods: []corev1.Pod{evicted, running("hello-0", "False")}, deployments: []appsv1.Deployment{own},
			want: "Pod ns/hello-0 runs and is not ready: its log may say why.",
		},
		"a pod that failed and is all there is": {pods: []corev1.Pod{evicted}, want: "Pod ns/hello-old: it failed: Evicted."},
		"a Deployment that makes no pods": {
			deployments: []appsv1.Deployment{refused},
			want:        "Deployment ns/hello-agent cannot make pods: FailedCreate: exceeded quota.",
		},
		"a Deployment scaled to nothing": {
			deployments: []appsv1.Deployment{deployment("hello-agent", 0)}, want: "Deployment ns/hello-agent is scaled to 0.",
		},
		"a Deployment without pods": {
			deployments: []appsv1.Deployment{own}, want: "Deployment ns/hello-agent has no pods.",
		},
		"a DaemonSet without nodes": {
			daemons: []appsv1.DaemonSet{{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}},
			want:    "DaemonSet ns/hello finds no node to run on.",
		},
		"workloads of other names are listed": {
			deployments: []appsv1.Deployment{deployment("a", 1), deployment("b", 1)},
			want: "No Deployment or DaemonSet in namespace ns bears the name of the add-on; there are " +
				"Deployment a, Deployment b.",
		},
		"pods without a Deployment": {
			pods: []corev1.Pod{running("hello-0", "True")}, want: "Pod ns/hello-0 runs: its log may say why it does not renew the lease.",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := snapshot{taken: true, namespace: tc.namespace, podsKnown: !tc.blind, workloadsKnown: !tc.blind}
			for i := range tc.pods {
				s.pods = append(s.pods, podOf("hello", &tc.pods[i]))
			}
			s.workloads = workloadsOf("hello", tc.deployments, tc.daemons)
			assert.Equal(t, tc.want, snapshotCause(s, "ns"))
		})
	}
}

func TestLikelyCause(t *testing.T) {
	pending := result{kind: csr.ConditionRotated, kubeconfig: true}
	denied := pending.withFailure(`csr "x" was denied: No`)
	served := result{kind: csr.ConditionRotated, kubeconfig: true, served: true}
	crash := snapshot{taken: true, pods: []pod{{name: "hello-0", own: true, trouble: "it is pending"}}}
	tests := map[string]struct {
		plan     plan
		results  []result
		snapshot snapshot
		want     string
	}{
		"nothing is known": {results: []result{served}},
		"a request that waits": {
			results: []result{pending},
			want:    "Its credential for the hub is not there yet: its certificate request waits on the hub to be approved and signed.",
		},
		"a request that was denied": {
			results: []result{denied},
			want:    `Its credential for the hub is not there: Failed to rotated client certificate csr "x" was denied: No.`,
		},
		"a hub that must move": {
			plan: plan{waits: true},
			want: "Its credential for the hub is not there yet: the hub has not said for whom it is to be " +
				"(status.registrations[].kubeClient.subject).",
		},
		"the certificate of a custom signer is not the one for the hub": {results: []result{{kind: csr.ConditionRotated}}},
		"both are told": {
			results: []result{denied}, snapshot: crash,
			want: `Its credential for the hub is not there: Failed to rotated client certificate csr "x" was denied: No. ` +
				"Pod ns/hello-0: it is pending.",
		},
		"without a namespace nothing else matters": {
			results: []result{denied}, snapshot: snapshot{taken: true, namespace: presenceMissing}, want: "Namespace ns does not exist.",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := addonWith()
			f.snapshot, tc.plan.place = tc.snapshot, place{namespace: "ns"}
			assert.Equal(t, tc.want, likelyCause(f, tc.plan, tc.results))
		})
	}
}

func TestMeasure(t *testing.T) {
	at := func(carried, seen time.Duration) renewal { return renewal{noon.Add(carried), noon.Add(seen)} }
	tests := map[string]struct {
		before, after renewal
		behind        time.Duration
		known         bool
	}{
		"clocks that agree":                   {at(0, 0), at(time.Minute, time.Minute), 0, true},
		"one that is ten minutes behind":      {at(-10*time.Minute, 0), at(-9*time.Minute, time.Minute), 10 * time.Minute, true},
		"one that is ahead":                   {at(time.Minute, 0), at(2*time.Minute, time.Minute), -time.Minute, true},
		"news that come late, all at once":    {at(-10*time.Minute, 0), at(-9*time.Minute, time.Millisecond), 0, false},
		"a clock that was set":                {at(-10*time.Minute, 0), at(time.Minute, time.Minute), 0, false},
		"a renewal that goes back":            {at(time.Minute, 0), at(0, time.Minute), 0, false},
		"a long silence with good clocks":     {at(0, 0), at(time.Hour, time.Hour), 0, true},
		"a renewal that was held up on a way": {at(0, 0), at(time.Minute, 4*time.Minute), 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := measure(tc.before, tc.after)
			assert.Equal(t, tc.known, s != nil)
			if s != nil {
				assert.Equal(t, tc.behind, s.behind)
			}
		})
	}
}

func TestAClockThatIsOffIsToldWhileTheLeaseIsRenewed(t *testing.T) {
	renewed := metav1.NewMicroTime(noon.Add(-20 * time.Minute))
	stale := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hello"}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed},
	}
	tests := map[string]struct {
		skew *skew
		want bool
	}{
		"nothing was measured":             {nil, false},
		"renewed now with an old time":     {&skew{seen: noon.Add(-time.Minute), behind: 20 * time.Minute}, true},
		"renewed so once, but not since":   {&skew{seen: noon.Add(-5 * time.Minute), behind: 20 * time.Minute}, false},
		"a distance that explains nothing": {&skew{seen: noon.Add(-time.Minute), behind: time.Minute}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := addonWith()
			f.addon.Status.HealthCheck.Mode = ""
			f.lease = observation{known: true, object: stale, skew: tc.skew}
			p := decide(f)
			assert.Equal(t, "ManagedClusterAddOnLeaseUpdateStopped", p.available.Reason)
			assert.Equal(t, tc.want, strings.Contains(p.available.Message, "lie 20m0s in the past"), p.available.Message)
			assert.Equal(t, !tc.want, p.explain)
			assert.Equal(t, !tc.want, inspectionNeeded(f), "where the clock is the cause, nothing is looked for")
		})
	}
}

func TestTheSkewIsMeasuredBetweenTwoEvents(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	s := &targetState{clock: clock, changed: func(_, _ client.Object) {}}
	renewedAt := func(at time.Time) *coordinationv1.Lease {
		renewed := metav1.NewMicroTime(at)
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	}
	behind := -10 * time.Minute
	s.Replace(t.Context(), []client.Object{renewedAt(noon.Add(behind))}, "")
	for range 2 {
		assert.Nil(t, s.get().skew)
		clock.Step(time.Minute)
		s.Update(t.Context(), renewedAt(clock.Now().Add(behind)))
	}
	assert.Equal(t, &skew{seen: clock.Now(), behind: 10 * time.Minute}, s.get().skew)
	s.Update(t.Context(), &coordinationv1.Lease{})
	assert.Equal(t, lease.Stale, lease.Judge(leaseOf(s.get()), noon, time.Minute).State, "a lease without a time says nothing")
}

func TestThePauseBetweenLooksGrowsWhileNothingChanges(t *testing.T) {
	same, other := snapshot{taken: true}, snapshot{taken: true, namespace: presenceMissing}
	last := inspection{pause: firstInspection}
	var pauses []time.Duration
	for range 8 {
		last = inspection{snapshot: same, pause: pauseAfter(last, same)}
		pauses = append(pauses, last.pause/time.Second)
	}
	assert.Equal(t, []time.Duration{5, 10, 20, 40, 80, 160, 300, 300}, pauses)
	assert.Equal(t, minRecheck, pauseAfter(last, other))
}

func TestANamespaceThatCanBeNoneIsTold(t *testing.T) {
	f := addonWith(hubClient("csr", "u", "g"))
	f.addon.Status.Namespace, f.addon.Status.HealthCheck.Mode = "No/Such", ""
	p := decide(f)
	assert.Empty(t, p.serve)
	assert.Empty(t, p.watch)
	assert.Contains(t, p.refused[0].condition.Message, `registrations[0]: namespace "No/Such" of the add-on agent can be no namespace`)
	assert.Contains(t, p.available.Message, "The status of hello add-on is unknown. There is no lease to be found: namespace")
	assert.False(t, obsolete(ownedSecret{side: sideAgent}, types.NamespacedName{Namespace: "agent"}, p, nil), "and nothing is removed for it")
}

func TestTheDifferenceOfClocksIsRounded(t *testing.T) {
	for name, tc := range map[string]struct{ behind, want time.Duration }{
		"a small one to ten seconds":       {5*time.Minute + 14*time.Second, 5*time.Minute + 10*time.Second},
		"ten minutes and more to a minute": {10*time.Minute + 14*time.Second, 10 * time.Minute},
		"a large one to a minute":          {14*time.Minute + 40*time.Second, 15 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts{now: noon, grace: 5 * time.Minute, lease: observation{skew: &skew{seen: noon, behind: tc.behind}}}
			off, ok := clockOff(f, lease.Verdict{State: lease.Stale})
			assert.True(t, ok)
			assert.Equal(t, tc.want, off)
		})
	}
}
