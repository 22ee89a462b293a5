package hubcluster_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/test/suite"
)

// hubConfigFolder has the sample of a kind of configuration of one's own.
const hubConfigFolder = "../../../manifests/samples/hub-config/"

func applySample(t *testing.T, name string) {
	t.Helper()
	content, err := os.ReadFile(hubConfigFolder + name)
	require.NoError(t, err)
	require.NoError(t, plane.Apply(t.Context(), content))
}

// Shows: hub/any-kind, hub/story-hub-config
func TestAConfigurationOfAnyKindIsReadWhereTheHubManagerMay(t *testing.T) {
	t.Parallel()
	createLabelled(t, "anykind", nil)
	kind := addonv1alpha1.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: "addonhubconfigs"}
	management := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "anykind"}}
	management.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyManual
	management.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{
		ConfigGroupResource: kind, DefaultConfig: &addonv1alpha1.ConfigReferent{Name: "hub-config-xxx"},
	}}
	require.NoError(t, plane.Client.Create(t.Context(), management))
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "anykind", Name: "anykind"}}
	suite.Eventually(t, func() error { return client.IgnoreAlreadyExists(plane.Client.Create(t.Context(), addOn.DeepCopy())) })

	says := func(status metav1.ConditionStatus, part string) {
		t.Helper()
		suite.Eventually(t, suite.Checks(func(c assert.TestingT) {
			if assert.NoError(c, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(addOn), addOn)) {
				have := meta.FindStatusCondition(addOn.Status.Conditions, "Configured")
				if assert.NotNil(c, have) {
					assert.Equal(c, status, have.Status)
					assert.Contains(c, have.Message, part)
				}
			}
		}))
	}
	says(metav1.ConditionFalse, `serves no resource "addonhubconfigs"`)
	applySample(t, "10-definition.yaml")
	says(metav1.ConditionFalse, `grant the verbs list and watch on resource "addonhubconfigs"`)
	applySample(t, "20-permission.yaml")
	says(metav1.ConditionFalse, `"hub-config-xxx" does not exist`)
	suite.Eventually(t, func() error {
		content, err := os.ReadFile(hubConfigFolder + "30-configs.yaml")
		if err != nil {
			return err
		}
		return plane.Apply(t.Context(), content)
	})
	says(metav1.ConditionTrue, "Configurations configured")
	hash := func(name string) string {
		t.Helper()
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: kind.Group, Version: "v1alpha1", Kind: "AddOnHubConfig"})
		require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Name: name}, u))
		hash, err := confighash.SpecHash(u)
		require.NoError(t, err)
		return hash
	}
	assert.Equal(t, hash("hub-config-xxx"), addOn.Status.ConfigReferences[0].DesiredConfig.SpecHash)

	patch(t, management, `{"spec":{"supportedConfigs":[{"group":"addon.open-cluster-management.io",`+
		`"resource":"addonhubconfigs","defaultConfig":{"name":"hub-config-yyy"}}]}}`)
	next := hash("hub-config-yyy")
	suite.Eventually(t, suite.Checks(func(c assert.TestingT) {
		if assert.NoError(c, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(addOn), addOn)) &&
			assert.Len(c, addOn.Status.ConfigReferences, 1) {
			assert.Equal(c, next, addOn.Status.ConfigReferences[0].DesiredConfig.SpecHash)
		}
	}))
}
