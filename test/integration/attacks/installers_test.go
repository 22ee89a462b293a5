package attacks_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

const policyInstallers = "addon-installers.spokelet.io"

// A user who may change the add-ons of a cluster, and not delete any, hands one that a person created over to its
// placements, which do not want it, and to the add-ons that depend on it, of which there are none.
//
// Shows: security/handed-over
func TestAnAddOnIsHandedOverByThoseWhoMayDeleteIt(t *testing.T) {
	const cluster, addOn = "handed-over", "handed-over"
	const user = who("a user who changes add-ons")
	governed(t, addOn, cluster)
	role := &rbacv1.Role{ObjectMeta: in(cluster, "changes"), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{addonv1alpha1.GroupName}, Resources: []string{"managedclusteraddons"},
		Verbs: []string{"get", "create", "update", "patch"},
	}}}
	require.NoError(t, shared.admin.Create(t.Context(), role))
	require.NoError(t, shared.admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: in(cluster, "changes"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "changes@example.com"}},
	}))
	shared.clients[user] = shared.plane.As(t, "changes@example.com")
	t.Cleanup(func() { delete(shared.clients, user) })
	own := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(cluster, addOn)}
	labels := func(value string) attempt {
		return change(own, `{"metadata":{"labels":{"`+names.LabelInstalledBy+`":`+value+`}}}`)
	}
	// A new right reaches the API server a moment after it was written.
	suite.Eventually(t, func() error {
		return change(own, `{"metadata":{"labels":{"example.com/of":"the-user"}}}`)(t.Context(), shared.clients[user])
	})
	refuse(t, map[string]misuse{
		"to its placements": {user, labels(`"` + names.InstalledByPlacement + `"`), policyInstallers},
		"to its dependents": {user, labels(`"` + names.InstalledByDependency + `"`), policyInstallers},
		"in the other version of the API": {user, change(&addonv1beta1.ManagedClusterAddOn{ObjectMeta: own.ObjectMeta},
			`{"metadata":{"labels":{"`+names.LabelInstalledBy+`":"`+names.InstalledByDependency+`"}}}`), policyInstallers},
	})

	role.Rules[0].Verbs = append(role.Rules[0].Verbs, "delete")
	require.NoError(t, shared.admin.Update(t.Context(), role))
	suite.Eventually(t, func() error {
		return labels(`"`+names.InstalledByPlacement+`"`)(t.Context(), client.NewDryRunClient(shared.clients[user]))
	})
}
