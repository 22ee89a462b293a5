package attacks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/wait"
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
// add-on of a cluster of the first group keeps it by a finalizer, or deletes it again and again.
//
// Shows: hub/tenants-hold-no-rollout
func TestATenantHoldsNoRolloutByDeletingItsAddOn(t *testing.T) {
	t.Run("and keeps it by a finalizer", func(t *testing.T) {
		addOn, good, own := inGroups(t, "kept")
		as := tenantOf(t, own.Namespace)
		suite.Eventually(t, func() error {
			return change(own, `{"metadata":{"finalizers":["evil.example.com/stay"]}}`)(t.Context(), as)
		})
		require.NoError(t, as.Delete(t.Context(), own))
		require.NoError(t, change(&addonv1alpha1.AddOnTemplate{ObjectMeta: in("", addOn)}, secondTemplate)(t.Context(), shared.admin))
		deployed(t, good, addOn, `"second"`)
	})
	t.Run("again and again", func(t *testing.T) {
		addOn, good, own := inGroups(t, "again")
		as := tenantOf(t, own.Namespace)
		deleting, stop := context.WithCancel(t.Context())
		var evil errgroup.Group
		evil.Go(func() error {
			return wait.PollUntilContextCancel(deleting, 2*time.Second, true, func(ctx context.Context) (bool, error) {
				return false, client.IgnoreNotFound(as.Delete(ctx, own.DeepCopy()))
			})
		})
		require.NoError(t, change(&addonv1alpha1.AddOnTemplate{ObjectMeta: in("", addOn)}, secondTemplate)(t.Context(), shared.admin))
		deployed(t, good, addOn, `"second"`)
		stop()
		require.ErrorIs(t, evil.Wait(), context.Canceled)
	})
}

// secondTemplate changes what a template deploys.
const secondTemplate = `{"spec":{"agentSpec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap",` +
	`"metadata":{"name":"second","namespace":"default"}}]}}}}`

// inGroups deploys an add-on to two clusters, group after group, and returns its name, the cluster of the second group,
// and its ManagedClusterAddOn on the other.
func inGroups(t *testing.T, addOn string) (name, later string, first *addonv1alpha1.ManagedClusterAddOn) {
	t.Helper()
	bad, good := addOn+"-a-evil", addOn+"-b-honest"
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
	return addOn, good, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(bad, addOn)}
}
