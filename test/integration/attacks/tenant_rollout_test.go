package attacks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// tenantOf returns a client of a user who may edit and delete the add-ons of one cluster.
func tenantOf(t *testing.T, cluster string) client.Client {
	t.Helper()
	tenant := "tenant-of-" + cluster + "@example.com"
	require.NoError(t, shared.admin.Create(t.Context(), &rbacv1.Role{ObjectMeta: in(cluster, "tenant"), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"managedclusteraddons"},
		Verbs: []string{"get", "patch", "delete"},
	}}}))
	require.NoError(t, shared.admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: in(cluster, "tenant"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: tenant}},
	}))
	return shared.plane.As(t, tenant)
}

// deployed waits until the work of an add-on on a cluster has a text.
func deployed(t *testing.T, cluster, addOn, text string) {
	t.Helper()
	suite.Eventually(t, func() error {
		var work workv1.ManifestWork
		key := client.ObjectKey{Namespace: cluster, Name: "addon-" + addOn + "-deploy-0"}
		if err := shared.admin.Get(t.Context(), key, &work); err != nil {
			return err
		}
		if !strings.Contains(string(work.Spec.Workload.Manifests[0].Raw), text) {
			return fmt.Errorf("cluster %s does not have %s", cluster, text)
		}
		return nil
	})
}

// One cluster at a time, and each has all the time that it needs. Who may edit the add-on of the one that has its turn
// names a configuration that does not exist.
//
// Shows: hub/tenants-hold-no-rollout
func TestATenantHoldsNoRolloutByAConfigurationThatDoesNotExist(t *testing.T) {
	const addOn, bad, good = "unfinished", "unfinished-a-evil", "unfinished-b-honest"
	joins(t, addOn, bad)
	paced(t, addOn, addOn)
	require.NoError(t, change(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: in("", addOn)},
		`{"spec":{"supportedConfigs":[{"group":"addon.open-cluster-management.io","resource":"addontemplates","defaultConfig":{"name":"`+addOn+`"}},`+
			`{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs"}],`+
			`"installStrategy":{"type":"Placements","placements":[{"name":"paced","namespace":"`+addOn+`","rolloutStrategy":`+
			`{"type":"Progressive","progressive":{"maxConcurrency":1}}}]}}}`)(t.Context(), shared.admin))
	deployed(t, bad, addOn, addOn)
	as := tenantOf(t, bad)
	suite.Eventually(t, func() error {
		return change(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(bad, addOn)},
			`{"spec":{"configs":[{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs","namespace":"`+
				bad+`","name":"missing"}]}}`)(t.Context(), as)
	})
	joins(t, addOn, good)
	deployed(t, good, addOn, addOn)
}

const groupsOfPaced = `  decisionStrategy:
    groupStrategy:
      decisionGroups:
      - {groupName: first, groupClusterSelector: {labelSelector: {matchLabels: {wave: first}}}}
      - {groupName: second, groupClusterSelector: {labelSelector: {matchLabels: {wave: second}}}}
  tolerations:
`

// Group after group, each cluster has five seconds, and counts for nothing where it fails. Who may edit and delete the
// add-on of a cluster of the first group deletes it, and keeps it by a finalizer.
//
// Shows: hub/tenants-hold-no-rollout
func TestATenantHoldsNoRolloutByAFinalizer(t *testing.T) {
	const addOn, bad, good = "kept", "kept-a-evil", "kept-b-honest"
	joins(t, addOn, bad, good)
	for cluster, wave := range map[string]string{bad: "first", good: "second"} {
		require.NoError(t, change(newCluster(cluster), `{"metadata":{"labels":{"wave":"`+wave+`"}}}`)(t.Context(), shared.admin))
	}
	file := strings.NewReplacer("ADDON", addOn, "LABEL", addOn, "  tolerations:\n", groupsOfPaced,
		`{type: Progressive, progressive: {maxConcurrency: 1, maxFailures: "100%", progressDeadline: 10m}}`,
		`{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: "100%", progressDeadline: 5s}}`).Replace(pacedFile)
	require.NoError(t, shared.plane.Apply(t.Context(), []byte(file)))
	deployed(t, bad, addOn, addOn)
	deployed(t, good, addOn, addOn)
	as, own := tenantOf(t, bad), &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(bad, addOn)}
	suite.Eventually(t, func() error {
		return change(own, `{"metadata":{"finalizers":["evil.example.com/stay"]}}`)(t.Context(), as)
	})
	require.NoError(t, as.Delete(t.Context(), own))
	require.NoError(t, change(&addonv1alpha1.AddOnTemplate{ObjectMeta: in("", addOn)},
		`{"spec":{"agentSpec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap",`+
			`"metadata":{"name":"second","namespace":"default"}}]}}}}`)(t.Context(), shared.admin))
	deployed(t, good, addOn, `"second"`)
}
