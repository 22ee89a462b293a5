package leader

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// An operator that replaces the Deployments of the agents takes the rights of the pods of before, so that these cannot
// release their Leases.
// Shows: registration/lease-of-a-gone-pod
func TestALeaseOfAPodThatIsGone(t *testing.T) {
	const pod = "klusterlet-registration-agent-7d8f9c6b5d-x7k2p"
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, pod)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod, nil)
	page := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: "pods"}, pod, "", 0, true)
	for name, c := range map[string]struct {
		holder string
		answer error
		renews time.Duration
		taken  bool
	}{
		"ours":                     {holder: pod, answer: missing, taken: true},
		"of OCM":                   {holder: pod + "_0b5d2a3c-2f0e-4b7e-8a44-d5d0f4f2b1aa", answer: missing, taken: true},
		"the pod exists":           {holder: pod},
		"pods may not be read":     {holder: pod, answer: forbidden},
		"the answer is of a proxy": {holder: pod, answer: page},
		"the API server is away":   {holder: pod, answer: apierrors.NewServiceUnavailable("away")},
		"it runs without a pod":    {holder: pod, answer: missing, renews: times.RetryPeriod},
		"the holder is a host":     {holder: "worker-1_0b5d2a3c-2f0e-4b7e-8a44-d5d0f4f2b1aa", answer: missing},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(&coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: LeaseRegistration},
					Spec: coordinationv1.LeaseSpec{
						HolderIdentity: ptr.To(c.holder), LeaseDurationSeconds: ptr.To[int32](137), RenewTime: ptr.To(metav1.NowMicro()),
					},
				})
				client.PrependReactor("get", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
					get, _ := action.(clienttesting.GetAction)
					assert.Equal(t, "ns/"+pod, get.GetNamespace()+"/"+get.GetName())
					return true, &corev1.Pod{}, c.answer
				})
				f := newFollower(t, candidate(client, "this-pod", registration))
				renewing, stop := context.WithCancel(t.Context())
				if c.renews > 0 {
					go renew(renewing, t, client, c.renews)
				}
				time.Sleep(30 * time.Second)
				synctest.Wait()
				assert.Empty(t, f.leads, "a holder that lives renews within that time")
				time.Sleep(90 * time.Second)
				synctest.Wait()
				assert.Equal(t, c.taken, len(f.leads) == 1)
				f.stop()
				require.NoError(t, <-f.ended)
				stop()
			})
		})
	}
}

// renew renews the Lease of registration now and then, for any holder.
func renew(ctx context.Context, t *testing.T, client *fake.Clientset, every time.Duration) {
	t.Helper()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		lease, err := client.CoordinationV1().Leases("ns").Get(ctx, LeaseRegistration, metav1.GetOptions{})
		if err != nil {
			t.Errorf("the Lease must be there to be renewed: %v", err)
			return
		}
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		_, err = client.CoordinationV1().Leases("ns").Update(ctx, lease, metav1.UpdateOptions{})
		assert.NoError(t, err)
	}
}

func TestTheHolderThatIsAPod(t *testing.T) {
	for holder, pod := range map[string]string{
		"klusterlet-agent-7d8f9c6b5d-x7k2p":          "klusterlet-agent-7d8f9c6b5d-x7k2p",
		"klusterlet-agent-7d8f9c6b5d-x7k2p_a-uid":    "klusterlet-agent-7d8f9c6b5d-x7k2p",
		"hosted.klusterlet-work-agent-5c4df-bbbbb_u": "hosted.klusterlet-work-agent-5c4df-bbbbb",
		"":                                            "",
		"worker-1":                                    "",
		"ip-10-0-0-1.ec2.internal_u":                  "",
		"gke-prod-pool-1-2f4b5c6d-x7k2_u":             "",
		"aks-nodepool1-12345678-vmss000000_u":         "",
		"klusterlet-agent-0":                          "",
		"../secrets-7d8f9c6b5d-x7k2p":                 "",
		"Klusterlet-agent-7d8f9c6b5d-x7k2p":           "",
		"_klusterlet-agent-7d8f9c6b5d-x7k2p":          "",
		"klusterlet-agent-7d8f9c6b5d-x7k2p.elsewhere": "",
	} {
		assert.Equal(t, pod, podOf(holder), holder)
	}
}
