package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/hub/addon"
)

// A consent that is taken back does not unbind (docs/security.md). What was bound is still that of the agent alone: to
// take a subject away gives nobody anything, so it needs no consent.
func TestAStrangerGoesFromABindingInAllNamespacesAfterTheConsentWasTakenBack(t *testing.T) {
	f := factsOf()
	f.setup.Permissions = []addon.Permission{inAllNamespaces("reader")}
	had := planBindings(f, nil)[0].After
	want := len(had.Subjects)
	had.Subjects = append(had.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "stranger"})
	hub := fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(ofEverywhere(had)).Build()
	r := &Reconciler{Client: &reviews{Client: hub}, Bindings: hub, Live: hub}
	f.bindings = []*rbacv1.RoleBinding{had}
	steps := planBindings(f, nil)
	require.Len(t, steps, 1)
	assert.NoError(t, r.runBindings(t.Context(), steps)[0])
	var left rbacv1.ClusterRoleBinding
	require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: had.Name}, &left))
	assert.Len(t, left.Subjects, want, "a stranger has the role in all namespaces")
}
