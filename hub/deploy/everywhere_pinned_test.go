package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
)

// The agent of a cluster chooses the driver in the status of its add-on, and a ServiceAccount gets no role in all
// namespaces. What the template does not ask for any more goes nevertheless: otherwise an agent would keep, by
// that choice, every role that it ever had, with a certificate that it has.
//
// Shows: hub/all-namespaces
func TestAnAgentKeepsNoUnaskedRoleByTheDriverThatItChooses(t *testing.T) {
	f := factsOf()
	f.setup.Permissions = []addon.Permission{
		inAllNamespaces("formerly"), permission(f.cluster.Name, "ClusterRole", "formerly-here"),
	}
	var had []*rbacv1.RoleBinding
	for _, s := range planBindings(f, nil) {
		had = append(had, s.After)
	}
	require.Len(t, had, 2)
	f.bindings = had
	f.setup.Permissions = distinct([]addon.Permission{inAllNamespaces("reader")})
	f.registrations = []addonv1beta1.RegistrationConfig{{
		Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{},
	}}
	deleted := func(f facts) (names []string) {
		r := &Reconciler{AllNamespaces: true}
		f.refused = r.checkPermissions(t.Context(), nil, client.ObjectKeyFromObject(f.addOn), f.setup.Permissions)
		for _, s := range decide(f).bindings {
			if s.Verb == reconcile.Delete || s.Verb == reconcile.Replace {
				names = append(names, s.Before.RoleRef.Name)
			}
		}
		return names
	}
	want := []string{"formerly", "formerly-here"}
	require.ElementsMatch(t, want, deleted(f), "with a certificate")
	f.addOn.Status.Registrations = []addonv1beta1.RegistrationConfig{{
		Type:       addonv1beta1.KubeClient,
		KubeClient: &addonv1beta1.KubeClientConfig{Driver: token.Driver},
	}}
	assert.ElementsMatch(t, want, deleted(f), "the agent says that it uses a token")
}
