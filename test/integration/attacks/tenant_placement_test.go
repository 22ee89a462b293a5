package attacks_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// taken is the number of bytes that were ever taken.
func taken() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// Shows: security/expressions-take-little-memory
// A Placement of 3 KB took 240 MB of the 512, and one of 16 KB more than all, also after each restart.
func TestATenantCannotFillTheHubManagerByAPlacement(t *testing.T) {
	const user, most = "placements@example.com", 100 << 20
	createForTest(t, &rbacv1.Role{ObjectMeta: in("signing", "placements"), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{clusterv1beta1.GroupName}, Resources: []string{"placements"}, Verbs: []string{"*"},
	}}})
	createForTest(t, &rbacv1.RoleBinding{
		ObjectMeta: in("signing", "placements"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "placements"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	config, err := shared.plane.User(user)
	require.NoError(t, err)
	tenant, err := client.New(config, client.Options{Scheme: shared.scheme, Mapper: shared.admin.RESTMapper()})
	require.NoError(t, err)
	placement := &clusterv1beta1.Placement{ObjectMeta: in("signing", "explodes")}
	placement.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{
			`managedCluster.metadata.name.matches("(` + strings.Repeat("a", 1500) + `){1000}")`,
		}},
	}}}
	before := taken()
	suite.Eventually(t, func() error { return tenant.Create(t.Context(), placement.DeepCopy()) })
	deleteAfterwards(t, placement)
	suite.Eventually(t, func() error {
		var found clusterv1beta1.Placement
		if err := tenant.Get(t.Context(), client.ObjectKeyFromObject(placement), &found); err != nil {
			return err
		}
		if meta.FindStatusCondition(found.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured) == nil {
			return errors.New("the hub manager has not looked at the Placement")
		}
		return nil
	})
	assert.Less(t, taken()-before, uint64(most))
}

// Three Placements of 1.4 MB with predicates of three bytes took 270 MiB of the 512.
//
// Shows: security/filled-objects
func TestListsThatATenantWritesHaveABound(t *testing.T) {
	placement := func(entries int) client.Object {
		p := &clusterv1beta1.Placement{ObjectMeta: in("signing", "long")}
		p.Spec.Predicates = make([]clusterv1beta1.ClusterPredicate, entries)
		return p
	}
	config := func(entries int) client.Object {
		c := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: in("signing", "long")}
		c.Spec.NodePlacement = &addonv1alpha1.NodePlacement{Tolerations: make([]corev1.Toleration, entries)}
		return c
	}
	for field, object := range map[string]func(entries int) client.Object{
		"spec.predicates": placement, "spec.nodePlacement.tolerations": config,
	} {
		require.NoError(t, shared.admin.Create(t.Context(), object(256), client.DryRunAll))
		require.ErrorContains(t, shared.admin.Create(t.Context(), object(257), client.DryRunAll),
			field+" must be a list of at most 256 entries; the hub manager keeps all of them in memory")
	}
	long := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: in("signing", "long")}
	long.Spec.ProxyConfig.NoProxy = strings.Repeat("a", 1<<16+1)
	require.ErrorContains(t, shared.admin.Create(t.Context(), long, client.DryRunAll),
		"spec.proxyConfig.noProxy must be a text of at most 65536 characters; each container of an add-on has it")
}
