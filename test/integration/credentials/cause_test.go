package credentials_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// awaitCause waits until the message of Available ends as given, and returns the condition.
func (m *member) awaitCause(end string) metav1.Condition {
	m.t.Helper()
	var found *metav1.Condition
	suite.Eventually(m.t, func() error {
		found = meta.FindStatusCondition(m.addon().Status.Conditions, "Available")
		if found == nil || !strings.HasSuffix(found.Message, end) {
			return fmt.Errorf("the message is %v, it should end in %q", found, end)
		}
		return nil
	})
	return *found
}

// pod makes a pod of a workload that nobody schedules, in the state given.
func (m *member) pod(name string, status corev1.PodStatus) {
	m.t.Helper()
	no := false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.addonNamespace, Name: name},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &no,
			Containers:                   []corev1.Container{{Name: "agent", Image: "example.com/hello:v1"}},
		},
	}
	// The controller of ServiceAccounts makes the default one soon after the namespace.
	m.eventually(func() bool { return m.spoke.Client.Create(m.t.Context(), pod.DeepCopy()) == nil }, "pod %s", name)
	require.NoError(m.t, m.spoke.Client.Get(m.t.Context(), client.ObjectKeyFromObject(pod), pod))
	pod.Status = status
	require.NoError(m.t, m.spoke.Client.Status().Update(m.t.Context(), pod))
}

func waiting(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "agent", Image: "example.com/hello:v1",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}}
}

// Shows: registration/likely-cause
func TestTheMessageOfASilentAddonSaysTheLikelyCause(t *testing.T) {
	t.Parallel()
	m := newMember(t, "cause")
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeLease, m.addonNamespace)
	ns := m.addonNamespace
	told := m.awaitCause(" Namespace " + ns + " does not exist.")
	assert.Equal(t, metav1.ConditionUnknown, told.Status)
	assert.Equal(t, "ManagedClusterAddOnLeaseNotFound", told.Reason)

	m.createNamespace(ns)
	m.awaitCause(" There is no Deployment or DaemonSet in namespace " + ns + ".")

	m.pod("hello-agent-0", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
		Message: "0/3 nodes are available: 3 Insufficient memory.",
	}}})
	m.awaitCause(" Pod " + ns + "/hello-agent-0: it is pending, no node takes it: Unschedulable: " +
		"0/3 nodes are available: 3 Insufficient memory.")
}

func TestTheMessageNamesTheImageThatCannotBePulled(t *testing.T) {
	t.Parallel()
	m := newMember(t, "cause-image")
	m.createNamespace(m.addonNamespace)
	m.pod("hello-agent-0", waiting("ImagePullBackOff", `Back-off pulling image "example.com/hello:v1"`))
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeLease, m.addonNamespace, kubeClient("user"))
	m.awaitCause(" Its credential for the hub is not there yet: its certificate request waits on the hub to be approved " +
		"and signed. Pod " + m.addonNamespace + "/hello-agent-0: image example.com/hello:v1 of container agent cannot be " +
		`pulled: ImagePullBackOff: Back-off pulling image "example.com/hello:v1".`)
	m.approve(m.awaitRequests(hello, 1)[0])
	told := m.awaitCause(`Back-off pulling image "example.com/hello:v1".`)
	m.eventually(func() bool {
		told = m.awaitCause(`Back-off pulling image "example.com/hello:v1".`)
		return !strings.Contains(told.Message, "credential")
	}, "the credential is no cause any more")
	m.renew(time.Now())
	told = m.awaitCondition("Available", metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated")
	assert.Equal(t, "hello add-on is available.", told.Message)
	m.awaitQuiet()
	before := m.spokeRequests.Load()
	m.never(func() bool { return m.spokeRequests.Load() != before }, "a healthy add-on costs nothing")
}

func TestTheMessageTellsOfDeploymentsThatCannotMakePods(t *testing.T) {
	t.Parallel()
	m := newMember(t, "cause-deployment")
	m.createNamespace(m.addonNamespace)
	label := map[string]string{"app": hello}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.addonNamespace, Name: "agent", Labels: label},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: label},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: label},
				Spec: corev1.PodSpec{
					ServiceAccountName: "nobody", Containers: []corev1.Container{{Name: "agent", Image: "example.com/hello:v1"}},
				},
			},
		},
	}
	require.NoError(t, m.spoke.Client.Create(t.Context(), deployment))
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeLease, m.addonNamespace)
	m.eventually(func() bool {
		told := meta.FindStatusCondition(m.addon().Status.Conditions, "Available")
		return told != nil && strings.Contains(told.Message,
			" Deployment "+m.addonNamespace+"/agent cannot make pods: FailedCreate: ") &&
			strings.Contains(told.Message, `serviceaccount "nobody" not found`)
	}, "what the Deployment says")
}

func TestALeaseRenewedByAClockThatIsBehindIsToldWithTheFigure(t *testing.T) {
	t.Parallel()
	m := newMember(t, "cause-clock")
	m.createNamespace(m.addonNamespace)
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeLease, m.addonNamespace)
	behind := func() string {
		m.renew(time.Now().Add(-20 * time.Minute))
		told := meta.FindStatusCondition(m.addon().Status.Conditions, "Available")
		if told == nil || told.Reason != "ManagedClusterAddOnLeaseUpdateStopped" {
			return ""
		}
		return told.Message
	}
	want := "hello add-on is not available. Its lease " + m.addonNamespace + "/hello is being renewed, but with times that " +
		"lie 20m0s in the past, and after 5m0s a lease counts as not renewed: the clocks of the add-on agent and of the " +
		"agent that reads the lease differ by that much, set them right."
	m.eventually(func() bool { return behind() == want }, "the figure")
	m.never(func() bool { return behind() != want }, "the message does not change with each renewal")
}

func TestWithoutTheRightToLookTheMessageSaysNoCause(t *testing.T) {
	site := second
	var binding rbacv1.ClusterRoleBinding
	key := types.NamespacedName{Name: "open-cluster-management:klusterlet-registration:addon-health"}
	require.NoError(t, site.Client.Get(t.Context(), key, &binding))
	require.NoError(t, site.Client.Delete(t.Context(), &binding))
	t.Cleanup(func() {
		binding.ResourceVersion, binding.UID = "", ""
		require.NoError(t, site.Client.Create(context.WithoutCancel(t.Context()), &binding))
	})
	m := newMemberOn(t, "cause-rights", site, site, site)
	m.createNamespace(m.addonNamespace)
	m.serve(m.accepted())
	m.enable(addonv1beta1.HealthCheckModeLease, m.addonNamespace)
	m.awaitCause("There is no lease " + m.addonNamespace + "/hello: no agent of the add-on has renewed it yet.")
	before := m.spokeRequests.Load()
	m.eventually(func() bool { return m.spokeRequests.Load() > before }, "it was looked")
	m.awaitQuiet()
	m.awaitCause("There is no lease " + m.addonNamespace + "/hello: no agent of the add-on has renewed it yet.")
	assert.Less(t, m.spokeRequests.Load()-before, int64(20), "no loop of errors")
}
