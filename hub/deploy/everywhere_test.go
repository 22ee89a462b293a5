package deploy

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// inAllNamespaces returns a permission in all namespaces.
func inAllNamespaces(role string) addon.Permission {
	p := permission("", "ClusterRole", role)
	p.AllNamespaces = true
	return p
}

// Shows: hub/all-namespaces
func TestARoleInAllNamespacesIsBoundLikeEveryOther(t *testing.T) {
	f := factsOf()
	f.setup.Permissions = []addon.Permission{inAllNamespaces("reader"), inAllNamespaces("reader"), inAllNamespaces("other")}
	steps := planBindings(f, nil)
	require.Len(t, steps, 2)
	one := steps[0].After
	assert.True(t, isEverywhere(one))
	assert.Equal(t, "open-cluster-management:a:clusterrole:c1:agent", one.Name)
	assert.Equal(t, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"}, one.RoleRef)
	assert.Equal(t, map[string]string{
		names.LabelAddonName: "a", names.LabelAddonTemplate: "", names.LabelClusterName: "c1",
	}, one.Labels)
	assert.Regexp(t, "^open-cluster-management:a:clusterrole:c1:agent:[0-9a-f]{8}$", steps[1].After.Name)

	f.bindings = []*rbacv1.RoleBinding{one, steps[1].After}
	assert.Empty(t, planBindings(f, nil), "what is there is kept")
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "c1", Name: "a-agent"}
	assert.Empty(t, planBindings(f, &account), "a ServiceAccount gets no role in all namespaces")
	f.setup.Permissions = f.setup.Permissions[2:]
	steps = planBindings(f, nil)
	require.Len(t, steps, 1)
	assert.Equal(t, reconcile.Delete, steps[0].Verb)
	assert.Same(t, one, steps[0].Before, "what the template does not ask for any more goes")

	of := one.DeepCopy()
	of.Labels[names.LabelClusterName], of.Name = "c2", "open-cluster-management:a:clusterrole:c2:agent"
	f.bindings = []*rbacv1.RoleBinding{of}
	f.setup.Permissions = nil
	assert.Empty(t, planBindings(f, nil), "that of another cluster stays")
}

func TestOnlyTheHubManagerBindsInAllNamespaces(t *testing.T) {
	key := types.NamespacedName{Namespace: "c1", Name: "a"}
	check := func(r *Reconciler, p addon.Permission) error {
		return r.checkPermissions(t.Context(), nil, key, []addon.Permission{p})
	}
	require.NoError(t, check(&Reconciler{AllNamespaces: true}, inAllNamespaces("reader")))
	require.ErrorContains(t, check(&Reconciler{}, inAllNamespaces("reader")), "only the hub manager binds a ClusterRole so")
	require.ErrorContains(t, check(&Reconciler{AllNamespaces: true}, inAllNamespaces("cluster-admin")), "never bound")
	role := inAllNamespaces("reader")
	role.RoleRef.Kind = "Role"
	require.ErrorContains(t, check(&Reconciler{AllNamespaces: true}, role), "only the hub manager binds a ClusterRole so")
	require.ErrorContains(t, check(&Reconciler{AllNamespaces: true}, permission("", "ClusterRole", "reader")),
		"without a namespace", "an empty namespace alone asks for nothing")
}

// reviews answers access reviews: which role the account of add-ons may bind in all namespaces.
type reviews struct {
	client.Client

	granted map[string]bool
	failed  error
	asked   []string
}

func (r *reviews) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	review, is := object.(*authorizationv1.SubjectAccessReview)
	if r.failed != nil || !is {
		return r.failed
	}
	of := review.Spec.ResourceAttributes
	r.asked = append(r.asked, review.Spec.User+" "+of.Verb+" "+of.Group+"/"+of.Resource+" "+of.Name)
	review.Status.Allowed = r.granted[of.Name] || r.granted["*"]
	return nil
}

// Shows: hub/all-namespaces-consent
func TestARoleInAllNamespacesNeedsAConsentThatNamesIt(t *testing.T) {
	for sentence, tc := range map[string]struct {
		granted map[string]bool
		failed  error
		says    string
		silent  string
	}{
		"nobody consented":     {says: "no administrator of the hub consented"},
		"an administrator did": {granted: map[string]bool{"reader": true}},
		"to another role":      {granted: map[string]bool{"other": true}, says: "no administrator of the hub consented"},
		"a right on all is none": {
			granted: map[string]bool{"*": true}, says: "which is no consent to any of them",
			silent: "kubectl create clusterrole",
		},
		"nobody knows": {failed: errors.New("no answer"), says: "no answer"},
	} {
		t.Run(sentence, func(t *testing.T) {
			hub := &reviews{granted: tc.granted, failed: tc.failed}
			err := (&Reconciler{Client: hub}).consented(t.Context(), "reader")
			if tc.says == "" {
				require.NoError(t, err)
				assert.Equal(t, []string{
					"system:serviceaccount:open-cluster-management-hub:addon-manager-controller-sa bind-in-all-namespaces " +
						"rbac.authorization.k8s.io/clusterroles reader",
					"system:serviceaccount:open-cluster-management-hub:addon-manager-controller-sa bind-in-all-namespaces " +
						"rbac.authorization.k8s.io/clusterroles open-cluster-management:no-role",
				}, hub.asked)
				return
			}
			require.ErrorContains(t, err, tc.says)
			step := bindingStep{Verb: reconcile.Create, After: &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{
				Kind: "ClusterRole", Name: "reader",
			}}}
			text := explainBinding(step, "open-cluster-management-hub/addon-manager-controller-sa", err)
			assert.Contains(t, text, "ClusterRole reader cannot be bound for the agent in all namespaces: ")
			if tc.silent != "" {
				assert.NotContains(t, text, tc.silent, "those commands were run, and do not help")
				return
			}
			if tc.failed == nil {
				assert.Contains(t, text, "kubectl create clusterrole bind-reader-everywhere "+
					"--verb=bind,bind-in-all-namespaces --resource=clusterroles.rbac.authorization.k8s.io --resource-name=reader")
				assert.Contains(t, text, "--serviceaccount=open-cluster-management-hub:addon-manager-controller-sa")
			}
		})
	}
}

// The template asked for a role with a consent, and now asks for another one that nobody consented to.
func TestARoleInAllNamespacesGoesThoughNobodyConsentedToTheNextOne(t *testing.T) {
	f := factsOf()
	f.setup.Permissions = []addon.Permission{inAllNamespaces("reader")}
	had := planBindings(f, nil)[0].After
	hub := fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(ofEverywhere(had)).Build()
	r := &Reconciler{
		Client: &reviews{Client: hub, granted: map[string]bool{"reader": true}}, Bindings: hub, Live: hub,
	}
	f.bindings, f.setup.Permissions = []*rbacv1.RoleBinding{had}, []addon.Permission{inAllNamespaces("other")}
	steps := planBindings(f, nil)
	require.Len(t, steps, 1)
	require.ErrorContains(t, r.runBindings(t.Context(), steps)[0], "no administrator of the hub consented")
	var left rbacv1.ClusterRoleBindingList
	require.NoError(t, hub.List(t.Context(), &left))
	assert.Empty(t, left.Items, "the agent keeps a role that its template does not ask for")
}
