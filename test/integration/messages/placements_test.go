package messages_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/test/suite"
)

// placement makes a Placement in the namespace "default", in which the default set of clusters is bound, and a
// ClusterManagementAddOn that is installed by it.
const placement = `
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: default}
spec: {clusterSelector: {selectorType: ExclusiveClusterSetLabel}}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: default, namespace: default}
spec: {clusterSet: default}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: %[1]s, namespace: default}
spec:
  tolerations: [{operator: Exists}]
  predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {%[2]s}}}}]
`

const byPlacement = `
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: %[1]s}
spec:
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: %[1]s}}
  installStrategy: {type: Placements, placements: [{name: %[1]s, namespace: default}]}
`

// roleless is a template whose role on the hub nobody created.
const roleless = `
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: roleless}
spec:
  addonName: roleless
  agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: roleless, namespace: default}}]}}
  registration:
  - type: KubeClient
    kubeClient: {hubPermissions: [{type: CurrentCluster, currentCluster: {clusterRoleName: nobody-made-it}}]}
`

func apply(t *testing.T, format string, args ...any) {
	t.Helper()
	require.NoError(t, plane.Apply(t.Context(), fmt.Appendf(nil, format, args...)))
}

// placementSays waits until the one placement of a ClusterManagementAddOn says all the texts.
func placementSays(t *testing.T, addOn string, texts ...string) {
	t.Helper()
	suite.Eventually(t, func() error {
		management, err := plane.AddOns.GetClusterManagementAddOn(t.Context(), addOn)
		if err != nil {
			return err
		}
		if len(management.Status.InstallProgressions) != 1 {
			return fmt.Errorf("it has %d placements", len(management.Status.InstallProgressions))
		}
		c := meta.FindStatusCondition(management.Status.InstallProgressions[0].Conditions,
			addonv1beta1.ManagedClusterAddOnConditionProgressing)
		if err := matches(c, metav1.ConditionTrue, "Progressing", texts...); err != nil {
			return err
		}
		t.Logf("%s: %s: %s", c.Type, c.Reason, c.Message)
		return nil
	})
}

func TestAPlacementThatSelectsNothingIsExplainedOnTheClusterManagementAddOn(t *testing.T) {
	t.Parallel()
	apply(t, placement, "nothing", "nobody: has-this")
	apply(t, byPlacement, "nothing")
	placementSays(t, "nothing",
		"selected clusters 0.", "placement default/nothing selects no cluster: No ManagedCluster matches the placement",
		"compare spec.predicates and spec.tolerations with the labels and taints of the ManagedClusters")
}

func TestAPlacementThatDoesNotExistIsNamedOnTheClusterManagementAddOn(t *testing.T) {
	t.Parallel()
	apply(t, byPlacement, "absent")
	placementSays(t, "absent",
		"placement default/absent does not exist: create it, or correct spec.installStrategy.placements")
	apply(t, placement, "absent", "nobody: has-this")
	placementSays(t, "absent", "placement default/absent selects no cluster")
}

func TestStuckClustersAndTheFirstCauseAreToldOnTheClusterManagementAddOn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"stuck-b", "stuck-a"} {
		require.NoError(t, plane.Client.Create(t.Context(), &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"stuck": "yes"}},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		}))
	}
	apply(t, placement, "roleless", `stuck: "yes"`)
	apply(t, roleless)
	apply(t, byPlacement, "roleless")
	placementSays(t, "roleless", "selected clusters 2.",
		"2 clusters are stuck, the first is stuck-a: RegistrationApplied is False (SetPermissionFailed): ",
		"ClusterRole nobody-made-it cannot be bound for the agent in namespace stuck-a: create the ClusterRole")
}
