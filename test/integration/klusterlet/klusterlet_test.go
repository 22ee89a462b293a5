package klusterlet_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestRegistrationAndWorkRunApartAsAKlusterletStartsThem(t *testing.T) {
	k := newKlusterlet(t, "apart", false)
	works := k.run(k.works())
	works.awaitReadiness("/hub-kubeconfig/kubeconfig does not exist yet: the registration agent writes it")
	registration := k.run(k.registration())
	k.admit()
	k.work("one")
	k.awaitApplied("one")
	k.registerAddon("helper")
	k.awaitClaim()
	assert.Len(t, k.requests(""), 1, "who only does works asks for no certificate")
	for _, p := range []*pod{works, registration} {
		p.awaitReadiness("serving")
	}
	assert.Equal(t, map[string]string{
		"registration-agent-lock": registration.name, "work-agent-lock": works.name,
	}, k.holders())

	k.replaceCertificate()
	k.eventually(func() bool { return strings.Contains(works.process.Log(), "a new certificate is in use for the hub") },
		"works are done with the new certificate")
	k.work("renewed")
	k.awaitApplied("renewed")

	works.stop()
	k.work("two")
	k.registerAddon("other")
	assert.False(t, k.configMap("two"), "registration does no works")
	registration.stop()
	works = k.run(k.works())
	k.awaitApplied("two")
	works.stop()
	assert.Equal(t, map[string]string{"registration-agent-lock": "", "work-agent-lock": ""}, k.holders(),
		"who ends releases its Lease")
}

func TestOneProcessDoesBothAsAKlusterletStartsIt(t *testing.T) {
	k := newKlusterlet(t, "both", true)
	p := k.run(k.both().with("--status-sync-interval=60s"))
	k.admit()
	k.registerAddon("helper")
	k.work("one")
	k.awaitApplied("one")
	p.awaitReadiness("serving")
	assert.Equal(t, map[string]string{
		"klusterlet-agent-lock": p.name, "registration-agent-lock": p.name, "work-agent-lock": p.name,
	}, k.holders())
	for _, flag := range []string{"--terminate-on-files", "--status-sync-interval", "--workload-source-config"} {
		assert.Contains(t, p.process.Log(), `msg="a flag has no effect" flag=`+flag)
	}
}

// Some releases of the operator switch leader election off for a Deployment with one replica.
func TestAReplicaAloneHoldsNoLease(t *testing.T) {
	k := newKlusterlet(t, "alone", true)
	k.run(k.both().with("--disable-leader-election"))
	k.admit()
	assert.Empty(t, k.holders())
}

func TestASecondPodWaitsForTheFirstAndTakesOver(t *testing.T) {
	k := newKlusterlet(t, "second", true)
	first := k.run(k.both())
	k.admit()
	second := k.run(k.both())
	second.awaitReadiness("klusterlet-agent-lock is held by " + first.name)
	code, _ := second.readiness()
	assert.Equal(t, http.StatusOK, code, "else a rollout would wait for it and never end the first")
	apart := k.run(k.works())
	apart.awaitReadiness("work-agent-lock is held by " + first.name)
	apart.stop()

	first.stop()
	k.work("one")
	k.awaitApplied("one")
	assert.Equal(t, second.name, k.holders()["klusterlet-agent-lock"])
}

// A Klusterlet that changes from Default to Singleton deletes the Deployment of an agent, and takes its rights before it
// could release its Lease.
// Shows: registration/lease-of-a-gone-pod
func TestALeaseOfAPodThatIsGoneIsTakenOver(t *testing.T) {
	k := newKlusterlet(t, "gone", true)
	const name = "klusterlet-registration-agent-7d8f9c6b5d-x7k2p"
	gone := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "ocm"}}},
	}
	gone.Spec.ServiceAccountName = k.both().account
	require.NoError(t, plane.Client.Create(t.Context(), gone))
	const holder = name + "_0b5d2a3c-2f0e-4b7e-8a44-d5d0f4f2b1aa"
	require.NoError(t, plane.Client.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "registration-agent-lock"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(holder), LeaseDurationSeconds: ptr.To[int32](3600),
			RenewTime: ptr.To(metav1.NewMicroTime(time.Now())), AcquireTime: ptr.To(metav1.NewMicroTime(time.Now())),
		},
	}))
	began := time.Now()
	p := k.run(k.both().with("--leader-election-retry-period=1s"))
	k.eventually(func() bool { return time.Since(began) > 15*time.Second }, "it had the time to take the Lease over")
	p.awaitReadiness("registration-agent-lock is held by " + holder)
	require.NoError(t, plane.Client.Delete(t.Context(), gone, client.GracePeriodSeconds(0)))
	k.admit()
	assert.Equal(t, p.name, k.holders()["registration-agent-lock"])
}

func TestAnAgentOfOCMThatHoldsALeaseIsWaitedFor(t *testing.T) {
	for lease, agent := range map[string]func(k *klusterlet) container{
		"registration-agent-lock": (*klusterlet).registration,
		"work-agent-lock":         (*klusterlet).works,
		"klusterlet-agent-lock":   (*klusterlet).both,
	} {
		t.Run(lease, func(t *testing.T) {
			k := newKlusterlet(t, "ocm", true)
			held := &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: lease},
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity: ptr.To("klusterlet-5d9c_1f"), LeaseDurationSeconds: ptr.To[int32](137),
					RenewTime: ptr.To(metav1.NewMicroTime(time.Now())), AcquireTime: ptr.To(metav1.NewMicroTime(time.Now())),
				},
			}
			require.NoError(t, plane.Client.Create(t.Context(), held))
			p := k.run(agent(k))
			p.awaitReadiness(lease + " is held by klusterlet-5d9c_1f")
			assert.Empty(t, k.requests(""), "it does nothing")
			// As OCM's agents release it.
			released := held.DeepCopy()
			released.Spec.HolderIdentity, released.Spec.LeaseDurationSeconds = ptr.To(""), ptr.To[int32](1)
			require.NoError(t, plane.Client.Patch(t.Context(), released, client.MergeFrom(held)))
			k.eventually(func() bool { return k.holders()[lease] == p.name }, "the Lease is taken")
		})
	}
}
