package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/spokelet/spokelet/internal/names"
)

// The program that makes an add-on binds a role in all namespaces by rights of its own, under the name that OCM proposes.
// It has no label of a template, by which all other steps tell what the hub manager made; so the hub manager leaves it.
func TestTheClusterRoleBindingOfAProgramIsLeftToIt(t *testing.T) {
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "d"}}
	theirs := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: boundEverywhere + ":program", Labels: map[string]string{
			names.LabelAddonName: "a", names.LabelClusterName: "c1",
		}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
	}
	r, f := everywhereHub(t, definition, theirs)
	f.byOthers = true
	require.NoError(t, r.leaveEverywhere(t.Context(), f))
	assert.Equal(t, []string{theirs.Name}, leftEverywhere(t, r))
}
