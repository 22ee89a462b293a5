package coexistence_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// management applies the ClusterManagementAddOn for all clusters with a value of a label.
func management(t *testing.T, label string) {
	t.Helper()
	require.NoError(t, hub.Apply(t.Context(), []byte(`apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: default, namespace: `+home+`}
spec: {clusterSet: default}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: weather, namespace: `+home+`}
spec:
  predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {weather: `+label+`}}}}]
  tolerations: [{operator: Exists}]
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: weather}
spec:
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs, defaultConfig: {name: cities, namespace: `+home+`}}
  installStrategy:
    type: Placements
    placements:
    - name: weather
      namespace: `+home+`
      rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}
`)))
}

// Shows: hub/author-program
// Shows: hub/author-rights
func TestAProgramBesideOurHubManager(t *testing.T) {
	configure(t, hub, "cities", "Oslo")
	label := suite.UniqueName("yes")
	management(t, label)
	labels := map[string]string{"weather": label}
	one := join(t, hub, "a-one", labels)
	one.deploys("Oslo")
	one.reports() // before the other one exists: whichever add-on is there first gets the only place
	two := join(t, hub, "b-two", labels)
	two.deploys("Oslo")
	two.reports()
	for _, f := range []fixture{one, two} {
		f.says(addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse, "completed with no errors")
		f.says(addonv1beta1.ManagedClusterAddOnConditionAvailable, metav1.ConditionTrue)
		f.says(addonv1beta1.ManagedClusterAddOnRegistrationApplied, metav1.ConditionTrue)
		var binding rbacv1.RoleBinding
		key := client.ObjectKey{Namespace: f.cluster, Name: "open-cluster-management:weather:clusterrole:agent"}
		require.NoError(t, hub.Client.Get(t.Context(), key, &binding))
		assert.Equal(t, "weather-reader", binding.RoleRef.Name)
	}

	t.Run("an edit in place moves one cluster at a time, and the other one is still repaired", func(t *testing.T) {
		one, two := fixture{t, hub, one.cluster}, fixture{t, hub, two.cluster}
		configure(t, hub, "cities", "Bergen")
		one.deploys("Bergen")
		two.deploys("Oslo")
		_, work, err := two.deployed()
		require.NoError(t, err)
		require.NoError(t, hub.Client.Delete(t.Context(), work))
		suite.Eventually(t, func() error {
			_, again, err := two.deployed()
			if err == nil && again.UID == work.UID {
				err = errStill
			}
			return err
		})
		two.deploys("Oslo")
		two.reports()
		one.reports()
		two.deploys("Bergen")
		two.reports()
		two.says(addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse, "completed with no errors")
	})

	t.Run("a ConfigMap as configuration of one cluster", func(t *testing.T) {
		two := fixture{t, hub, two.cluster}
		require.NoError(t, hub.Apply(t.Context(), []byte(`apiVersion: v1
kind: ConfigMap
metadata: {name: names, namespace: `+home+`}
data: {language: norwegian}
`)))
		require.NoError(t, hub.Client.Patch(t.Context(), &addonv1beta1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: two.cluster, Name: weather},
		}, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"configs":[
			{"group":"","resource":"configmaps","namespace":"`+home+`","name":"names"}]}}`))))
		two.says(addonv1beta1.ManagedClusterAddOnConditionConfigured, metav1.ConditionFalse, "names", "configmaps")
		require.NoError(t, hub.Apply(t.Context(), []byte(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: names, namespace: `+home+`}
rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [names], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: names, namespace: `+home+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: names}
subjects:
- {kind: ServiceAccount, name: weather-manager, namespace: `+home+`}
- {kind: ServiceAccount, name: spokelet-hub, namespace: open-cluster-management-hub}
`)))
		suite.Within(t, 2*time.Minute, func() error { // a refused watch is tried again ever later
			data, _, err := two.deployed()
			if err == nil && data["names"] != "map[language:norwegian]" {
				err = fmt.Errorf("there are no names: %v", data)
			}
			return err
		})
	})

	t.Run("nothing that the program needs was refused", func(t *testing.T) {
		for _, line := range refused(t, hub) {
			assert.Contains(t, string(line), `"resource":"configmaps"`, "only what an administrator had to grant")
		}
	})

	t.Run("without the ClusterManagementAddOn, everything goes", func(t *testing.T) {
		one, two := fixture{t, hub, one.cluster}, fixture{t, hub, two.cluster}
		require.NoError(t, hub.Client.Delete(t.Context(), &addonv1beta1.ClusterManagementAddOn{
			ObjectMeta: metav1.ObjectMeta{Name: weather},
		}))
		for _, f := range []fixture{one, two} {
			suite.Within(t, 2*time.Minute, func() error { // the garbage collector learns of new kinds every half minute
				if _, _, err := f.deployed(); !apierrors.IsNotFound(err) {
					return fmt.Errorf("the work is still there: %w", err)
				}
				return nil
			})
		}
	})
}
