package fleet_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// TestOurOwnWorkNeedsNoWebhook runs a hub manager that does not serve the conversion, while the definitions say that it
// does: a client of v1beta1 gets nothing but errors, and the add-on is installed on both clusters all the same.
// Shows: hub/no-webhook-needed
func TestOurOwnWorkNeedsNoWebhook(t *testing.T) {
	f := shared.fleet
	serving := f.HubManager()
	serving.Stop(10 * time.Second)
	mute := &sandbox.Process{
		Name: "hub manager without webhook", Path: serving.Path, LogPath: serving.LogPath,
		Args: slices.DeleteFunc(slices.Clone(serving.Args), func(arg string) bool {
			return strings.HasPrefix(arg, "--webhook") || arg == "--install-crds"
		}),
	}
	require.NoError(t, mute.Start())
	t.Cleanup(func() {
		mute.Stop(10 * time.Second)
		require.NoError(t, serving.Start())
		removeHello(t, f)
	})

	require.NoError(t, f.ApplySample(t.Context(), "hello"))
	err := f.HubClient.Get(t.Context(), client.ObjectKey{Name: "hello"}, &addonv1beta1.ClusterManagementAddOn{})
	require.ErrorContains(t, err, "conversion webhook", "a client of v1beta1 needs the webhook, which is down")
	for _, cluster := range f.Clusters() {
		eventually(t, "hello on "+cluster.Name, func(ctx context.Context) error {
			if err := mute.Exited(); err != nil {
				return err
			}
			return completed(ctx, f, cluster)
		})
	}
}

// completed returns why hello is not rolled out on a cluster, by what v1alpha1 says.
func completed(ctx context.Context, f *fleet.Fleet, cluster *fleet.Cluster) error {
	var addon addonv1alpha1.ManagedClusterAddOn
	if err := f.HubClient.Get(ctx, client.ObjectKey{Namespace: cluster.Name, Name: "hello"}, &addon); err != nil {
		return err
	}
	for condition, want := range map[string]string{
		"Progressing": "Completed", "ClusterCertificateRotated": "ClientCertificateUpdated",
	} {
		c := meta.FindStatusCondition(addon.Status.Conditions, condition)
		if c == nil || c.Reason != want {
			return fleet.NotYet("%s: %v", condition, c)
		}
	}
	key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: "hello-hub-kubeconfig"}
	return cluster.Client.Get(ctx, key, &corev1.Secret{})
}

// removeHello deletes the add-on and waits until it is gone.
func removeHello(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	require.NoError(t, f.HubClient.Delete(ctx, cma))
	for _, cluster := range f.Clusters() {
		require.NoError(t, fleet.Wait(ctx, "hello to be gone", nil, func(ctx context.Context) error {
			return gone(ctx, f, cluster, "hello")
		}))
	}
}
