package conversion_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// managementWith returns a ClusterManagementAddOn in v1beta1 that sets a mode, and names a template as its default.
func managementWith(name, mode string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"defaultConfigs": []any{map[string]any{
			"group": addonv1beta1.GroupName, "resource": "addontemplates", "name": name,
		}},
		"hostedModeAutoDiscovery": map[string]any{"mode": mode},
	}}}
	u.SetAPIVersion(addonv1beta1.GroupVersion.String())
	u.SetKind("ClusterManagementAddOn")
	u.SetName(name)
	return u
}

// has checks the mode of a ClusterManagementAddOn; empty is a field that is not set.
func has(t *testing.T, live client.Client, name, mode string) {
	t.Helper()
	got, version, err := addonapi.AutoDiscovery(t.Context(), live, name)
	require.NoError(t, err)
	assert.NotEmpty(t, version)
	assert.Equal(t, mode, got)
}

// everybodyKeepsTheMode writes a ClusterManagementAddOn in all ways in which others and the hub manager write it.
func everybodyKeepsTheMode(t *testing.T, live client.Client, name string) {
	t.Helper()
	ctx, key := t.Context(), client.ObjectKey{Name: name}
	require.ErrorContains(t, live.Create(ctx, managementWith(name, "Sometimes")), "supported values")
	require.NoError(t, live.Create(ctx, managementWith(name, "Enable")))
	has(t, live, name, "Enable")

	alpha := &addonv1alpha1.ClusterManagementAddOn{}
	require.NoError(t, live.Get(ctx, key, alpha))
	assert.Len(t, alpha.Annotations, 1, "v1alpha1 has it in an annotation")
	alpha.Labels = map[string]string{"written": "in-v1alpha1"}
	require.NoError(t, live.Update(ctx, alpha))
	has(t, live, name, "Enable")

	for _, wire := range []addonapi.Wire{addonapi.WireAlpha, addonapi.WireBeta} {
		ours := addonapi.Client{Client: live, Wire: wire}
		before, err := ours.GetClusterManagementAddOn(ctx, name)
		require.NoError(t, err)
		after := before.DeepCopy()
		after.Status.DefaultConfigReferences = []addonv1beta1.DefaultConfigReference{{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{Resource: "r"},
			DesiredConfig: &addonv1beta1.ConfigSpecHash{
				ConfigReferent: addonv1beta1.ConfigReferent{Name: string(wire)}, SpecHash: "h",
			},
		}}
		changed, err := ours.PatchClusterManagementAddOnStatus(ctx, before, after)
		require.NoError(t, err)
		assert.True(t, changed)
		object := ours.MetadataOfClusterManagementAddOn()
		object.SetName(name)
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"written-in":%q}}}`, wire)
		require.NoError(t, live.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))))
		has(t, live, name, "Enable")
	}

	// A user of v1alpha1 takes the annotation off, and writes it again.
	require.NoError(t, live.Get(ctx, key, alpha))
	carried := alpha.Annotations[names.AnnotationCarried]
	require.NotEmpty(t, carried)
	delete(alpha.Annotations, names.AnnotationCarried)
	require.NoError(t, live.Update(ctx, alpha))
	has(t, live, name, "")
	require.NoError(t, live.Get(ctx, key, alpha))
	assert.NotContains(t, alpha.Annotations, names.AnnotationCarried, "it stays out")
	alpha.Annotations[names.AnnotationCarried] = carried
	require.NoError(t, live.Update(ctx, alpha))
	has(t, live, name, "Enable")

	beta := managementWith(name, "")
	require.NoError(t, live.Get(ctx, key, beta))
	require.NoError(t, unstructured.SetNestedField(beta.Object, "Disable", "spec", "hostedModeAutoDiscovery", "mode"))
	require.NoError(t, live.Update(ctx, beta))
	has(t, live, name, "Disable")
	unstructured.RemoveNestedField(beta.Object, "spec", "hostedModeAutoDiscovery")
	require.NoError(t, live.Update(ctx, beta))
	has(t, live, name, "")
	require.NoError(t, live.Get(ctx, key, alpha))
	assert.NotContains(t, alpha.Annotations, names.AnnotationCarried)
	require.NoError(t, live.Delete(ctx, beta))
}

// Shows: hub/hosting-field
func TestNobodyLosesWhetherTheHubMayFindHostingClusters(t *testing.T) {
	t.Run("stored in v1alpha1", func(t *testing.T) { everybodyKeepsTheMode(t, admin, "discovering") })
	t.Run("stored in v1beta1", func(t *testing.T) {
		install(t, shipped(t, byConverter(t), func(u *unstructured.Unstructured) {
			versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
			for _, version := range versions {
				if version, ok := version.(map[string]any); ok && u.GetName() == managements {
					version["storage"] = version["name"] == "v1beta1"
				}
			}
			_ = unstructured.SetNestedSlice(u.Object, versions, "spec", "versions")
		}), createdBy(t.Context(), "kubectl-create"))
		suite.Eventually(t, func() error {
			return second.admin.List(t.Context(), &addonv1beta1.ClusterManagementAddOnList{})
		})
		everybodyKeepsTheMode(t, second.admin, "discovering")
	})
	t.Run("a definition without the field", func(t *testing.T) {
		install(t, shipped(t, byConverter(t), func(u *unstructured.Unstructured) {
			versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
			for _, version := range versions {
				if version, ok := version.(map[string]any); ok {
					unstructured.RemoveNestedField(version, "schema", "openAPIV3Schema", "properties", "spec", "properties",
						"hostedModeAutoDiscovery")
				}
			}
			_ = unstructured.SetNestedSlice(u.Object, versions, "spec", "versions")
		}), createdBy(t.Context(), "kubectl-create"))
		suite.Eventually(t, func() error { return second.admin.Create(t.Context(), managementWith("older", "Enable")) })
		has(t, second.admin, "older", "")
	})
}

// TestTheHubReadsWhetherItMayFindHostingClusters has an add-on that asks for a hosting cluster, and an owner that
// allows the hub to find it, and then does not, in the field; the annotation says the contrary.
//
// Shows: hub/hosting-field
func TestTheHubReadsWhetherItMayFindHostingClusters(t *testing.T) {
	ctx := t.Context()
	install(t, shipped(t, byConverter(t)), createdBy(ctx, "kubectl-create"))
	runHub(t, nil).becomesReady(t)
	admin := suite.NewClient(t, second.plane.Admin())
	cluster, name := suite.UniqueName("cluster"), suite.UniqueName("seeker")
	require.NoError(t, admin.Create(ctx, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}))
	suite.Eventually(t, func() error {
		return admin.Get(ctx, client.ObjectKey{Name: cluster}, &corev1.Namespace{})
	})
	template := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"addonName": name,
		"agentSpec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "hello", "namespace": "default"},
		}}}},
	}}}
	template.SetAPIVersion(addonv1alpha1.GroupVersion.String())
	template.SetKind("AddOnTemplate")
	template.SetName(name)
	require.NoError(t, admin.Create(ctx, template))
	management := managementWith(name, "Enable")
	management.SetAnnotations(map[string]string{names.AnnotationAutoDiscovery: "Disable"})
	require.NoError(t, admin.Create(ctx, management))
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster, Name: name, Annotations: map[string]string{names.AnnotationInstallMode: "Hosted"},
	}}
	require.NoError(t, admin.Create(ctx, addOn))
	suite.Eventually(t, func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(addOn), addOn); err != nil {
			return err
		}
		c := meta.FindStatusCondition(addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnHostingClusterValidity)
		if c == nil || c.Reason != "HostingClusterAutoDiscoveryPending" {
			return fmt.Errorf("the status is %+v", addOn.Status)
		}
		return nil
	})

	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+names.AnnotationAutoDiscovery+
		`":"Enable"}},"spec":{"hostedModeAutoDiscovery":{"mode":"Disable"}}}`))
	require.NoError(t, admin.Patch(ctx, management, patch))
	suite.Eventually(t, func() error {
		var works workv1.ManifestWorkList
		err := admin.List(ctx, &works, client.InNamespace(cluster), client.MatchingLabels{names.LabelAddonName: name})
		if err := errors.Join(err, admin.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)); err != nil {
			return err
		}
		c := meta.FindStatusCondition(addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnHostingClusterValidity)
		if c != nil || len(works.Items) != 1 {
			return fmt.Errorf("there are %d works; the status is %+v", len(works.Items), addOn.Status)
		}
		return nil
	})
}
