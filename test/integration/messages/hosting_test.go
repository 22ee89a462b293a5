package messages_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

func TestAHostingClusterThatCannotHostIsToldOnTheAddOn(t *testing.T) {
	t.Parallel()
	const validity, invalid = "HostingClusterValidity", "HostingClusterInvalid"
	define(t, "hostless")
	install(t, "hostless", map[string]string{names.AnnotationHostingCluster: "the-host"})
	says(t, "hostless", validity, metav1.ConditionFalse, invalid,
		`There is no ManagedCluster "the-host"`, "Correct the annotation, or register that cluster.")

	host := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "the-host"}}
	require.NoError(t, plane.Client.Create(t.Context(), host))
	says(t, "hostless", validity, metav1.ConditionFalse, invalid,
		"The hub does not accept cluster the-host", "Set spec.hubAcceptsClient of the ManagedCluster to true, or name another")

	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":true}}`))
	require.NoError(t, plane.Client.Patch(t.Context(), host, patch))
	says(t, "hostless", validity, metav1.ConditionTrue, "HostingClusterValid")
	require.NoError(t, plane.Client.Delete(t.Context(), host))
	says(t, "hostless", validity, metav1.ConditionFalse, invalid, "Correct the annotation, or register that cluster.")
}

// The agent of the cluster reports by a claim where it runs, and the hub finds that cluster for an add-on that asks.
//
// Shows: hub/hosting-found, hub/hosting-differs
func TestAHostingClusterThatTheHubFindsIsToldOnTheAddOn(t *testing.T) {
	t.Parallel()
	const validity, finder = "HostingClusterValidity", "the-finder"
	define(t, "seeker")
	install(t, "seeker", map[string]string{names.AnnotationInstallMode: "Hosted"})
	says(t, "seeker", validity, metav1.ConditionFalse, "HostingClusterAutoDiscoveryPending",
		"does not say on which cluster its agent runs", "Set spec.deployOption.reportHostingCluster of its Klusterlet to Enable")

	members := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "finders"}}
	members.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType:  clusterv1beta2.LabelSelector,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"finders": "yes"}},
	}
	require.NoError(t, plane.Client.Create(t.Context(), members))
	host := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: finder, Labels: map[string]string{"finders": "yes"}, Annotations: map[string]string{names.AnnotationHosts: home},
	}}
	host.Spec.HubAcceptsClient = true
	require.NoError(t, plane.Client.Create(t.Context(), host))
	target := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: home}}
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"finders":"yes"}}}`))
	require.NoError(t, plane.Client.Patch(t.Context(), target, label))
	claim := &clusterv1alpha1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Name: names.ClaimHostingCluster}, Spec: clusterv1alpha1.ClusterClaimSpec{Value: finder},
	}
	require.NoError(t, plane.Client.Create(t.Context(), claim))
	says(t, "seeker", validity, metav1.ConditionTrue, "HostingClusterValid", "and the agent of cluster home runs there")
	found, err := plane.AddOns.GetAddOn(t.Context(), types.NamespacedName{Namespace: home, Name: "seeker"})
	require.NoError(t, err)
	assert.Equal(t, finder, found.Annotations[names.AnnotationHostingCluster])
	assert.Equal(t, "auto-discovery", found.Annotations[names.AnnotationHostManagedBy])
	suite.Eventually(t, func() error {
		work := &workv1.ManifestWork{}
		return plane.Client.Get(t.Context(), types.NamespacedName{Namespace: finder, Name: "addon-seeker-deploy-hosting-home-0"}, work)
	})

	claim.Spec.Value = "elsewhere"
	require.NoError(t, plane.Client.Update(t.Context(), claim))
	says(t, "seeker", validity, metav1.ConditionFalse, "HostingClusterMismatch", `its agent runs on cluster "elsewhere"`,
		"what is there stays", "correct the claim")
	found, err = plane.AddOns.GetAddOn(t.Context(), types.NamespacedName{Namespace: home, Name: "seeker"})
	require.NoError(t, err)
	assert.Equal(t, finder, found.Annotations[names.AnnotationHostingCluster], "what was found is never moved")
	require.NoError(t, plane.Client.Delete(t.Context(), claim))
}
