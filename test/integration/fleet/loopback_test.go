package fleet_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// TestAHubManagesItself lets a hub join itself: agent and hub manager on one API server, add-on included, and leave
// again. The agent asks for certificates of a lifetime of its own.
// Shows: registration/hub-manages-itself, registration/token-lifetime-flag
func TestAHubManagesItself(t *testing.T) {
	f, err := fleet.New(t.Context(), fleet.Options{Binaries: shared.binaries, Log: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	self := f.Loopback("local-cluster")
	require.NoError(t, f.InstallHub(t.Context(), nil))
	require.NoError(t, f.StartAgent(t.Context(), self, "--client-cert-expiration-seconds=7200"))
	require.NoError(t, f.Accept(t.Context(), self.Name, map[string]string{"environment": "demo"}))
	eventually(t, "the hub to be available to itself", func(ctx context.Context) error {
		return f.WaitAvailable(ctx, self, nil)
	})
	require.NoError(t, f.ApplySample(t.Context(), "hello"))
	eventually(t, "the add-on to be rolled out", func(ctx context.Context) error {
		return errors.Join(
			rolledOut(ctx, f, self.Name, "hello"),
			f.HubClient.Get(ctx, client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: "hello-hub-kubeconfig"},
				&corev1.Secret{}),
			f.HubClient.Get(ctx, client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: "hello-agent"},
				&appsv1.Deployment{}),
		)
	})
	var requests certificatesv1.CertificateSigningRequestList
	require.NoError(t, f.HubClient.List(t.Context(), &requests, client.MatchingLabels{names.LabelClusterName: self.Name}))
	require.Len(t, requests.Items, 2, "one for the cluster and one for the add-on")
	for _, request := range requests.Items {
		require.NotNil(t, request.Spec.ExpirationSeconds, request.Name)
		assert.Equal(t, int32(7200), *request.Spec.ExpirationSeconds, request.Name)
	}

	cma := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	require.NoError(t, f.HubClient.Delete(t.Context(), cma))
	eventually(t, "the add-on to be gone", func(ctx context.Context) error { return gone(ctx, f, self, "hello") })
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: self.Name}}
	require.NoError(t, f.HubClient.Delete(t.Context(), mc))
	eventually(t, "the cluster to be gone", func(ctx context.Context) error {
		err := f.HubClient.Get(ctx, client.ObjectKey{Name: self.Name}, &clusterv1.ManagedCluster{})
		if err == nil {
			return fleet.NotYet("the ManagedCluster is there")
		}
		return client.IgnoreNotFound(err)
	})
}
