package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// everywhereHub returns a hub with the ClusterRoleBinding of add-on a on cluster c1, and other objects.
func everywhereHub(t *testing.T, objects ...client.Object) (*Reconciler, facts) {
	t.Helper()
	f := factsOf()
	f.setup.Permissions = []addon.Permission{inAllNamespaces("reader")}
	had := ofEverywhere(planBindings(f, nil)[0].After)
	hub := fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(append(objects, had)...).
		WithIndex(&rbacv1.ClusterRoleBinding{}, indexEverywhere, everywhereKeys).
		WithIndex(&rbacv1.RoleBinding{}, addonapi.IndexBinding, addonapi.BindingKeys).Build()
	r := &Reconciler{
		Client: hub, Bindings: hub, Live: hub, AllNamespaces: true,
		AddOns: addonapi.Client{Client: hub},
	}
	return r, f
}

func leftEverywhere(t *testing.T, r *Reconciler) []string {
	t.Helper()
	var list rbacv1.ClusterRoleBindingList
	require.NoError(t, r.Client.List(t.Context(), &list))
	all := make([]string, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, list.Items[i].Name)
	}
	return all
}

const boundEverywhere = "open-cluster-management:a:clusterrole:c1:agent"

// Shows: hub/all-namespaces
func TestAnAddOnThatIsNoTemplateAnyMoreHasNoRoleInAllNamespaces(t *testing.T) {
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "d"}}
	r, f := everywhereHub(t, definition)

	require.NoError(t, r.leaveEverywhere(t.Context(), f))
	assert.Equal(t, []string{boundEverywhere}, leftEverywhere(t, r), "a template makes it")

	f.byOthers = true
	newer := fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(definition.DeepCopy()).Build()
	current := &addonv1alpha1.ClusterManagementAddOn{}
	require.NoError(t, newer.Get(t.Context(), client.ObjectKeyFromObject(definition), current))
	current.Labels = map[string]string{"edited": "yes"}
	require.NoError(t, newer.Update(t.Context(), current))
	r.Live = newer
	err := r.leaveEverywhere(t.Context(), f)
	require.True(t, reconcile.IsLostRace(err) || apierrors.IsConflict(err), "the cache is behind: %v", err)
	assert.Equal(t, []string{boundEverywhere}, leftEverywhere(t, r), "it may be made of a template again")

	r.Live = r.Client
	require.NoError(t, r.leaveEverywhere(t.Context(), f))
	assert.Empty(t, leftEverywhere(t, r))
}

// Shows: hub/all-namespaces
func TestAClusterRoleBindingOfAnAdministratorIsNoneOfAnAddOnWhateverItsLabelsSay(t *testing.T) {
	theirs := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs", Labels: map[string]string{
			names.LabelAddonName: "a", names.LabelAddonTemplate: "", names.LabelClusterName: "c1",
		}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
	}
	r, _ := everywhereHub(t, theirs)
	all, err := r.listBindings(t.Context(), types.NamespacedName{Namespace: "c1", Name: "a"})
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, boundEverywhere, all[0].Name)
	hashed := ofEverywhere(all[0]).DeepCopy()
	hashed.Name += ":0123abcd"
	assert.Equal(t, []string{"c1/a"}, everywhereKeys(hashed), "ours with a hash of its role")
}

// The author of a template chooses the name of a role, and an administrator runs what a condition says.
func TestACommandContainsNoNameOfARoleThatMeansSomethingToAShell(t *testing.T) {
	denied := apierrors.NewForbidden(rbacv1.Resource("rolebindings"), "b", nil)
	for _, kind := range []string{"Role", "ClusterRole"} {
		step := bindingStep{Verb: reconcile.Create, After: &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "b"},
			RoleRef:    rbacv1.RoleRef{Kind: kind, Name: "reader;id"},
		}}
		text := explainBinding(step, "hub/account", denied)
		assert.NotContains(t, text, "kubectl")
		assert.Contains(t, text, "Create a "+kind+" whose name has only letters")
		step.After.RoleRef.Name = "reader"
		assert.Contains(t, explainBinding(step, "hub/account", denied), "kubectl create")
	}
}
