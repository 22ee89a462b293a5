package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
)

// A former version bound a role in all namespaces to the ServiceAccount of an agent with the driver token. No role is
// bound so any more (docs/reference/hub.md, "Hub permissions"), so what is bound goes as well: a user who may create
// Secrets or pods in the namespace of the cluster has the role in all namespaces as long as it stays.
//
// Shows: hub/all-namespaces
func TestAServiceAccountLosesTheRoleInAllNamespacesThatAFormerVersionBoundToIt(t *testing.T) {
	f := factsOf()
	f.setup.Permissions = distinct([]addon.Permission{inAllNamespaces("reader")})
	f.accountOurs = true
	f.registrations = []addonv1beta1.RegistrationConfig{{
		Type:       addonv1beta1.KubeClient,
		KubeClient: &addonv1beta1.KubeClientConfig{Driver: token.Driver},
	}}
	f.addOn.Status.Registrations = []addonv1beta1.RegistrationConfig{{
		Type: addonv1beta1.KubeClient,
		KubeClient: &addonv1beta1.KubeClientConfig{
			Driver: token.Driver,
			Subject: addonv1beta1.KubeClientSubject{
				BaseSubject: addonv1beta1.BaseSubject{User: token.User(f.cluster.Name, f.addOn.Name)},
			},
		},
	}}
	had := planBindings(f, nil)[0].After
	had.Subjects = append(had.Subjects, accountOf(f))
	f.bindings = []*rbacv1.RoleBinding{had}
	key := client.ObjectKeyFromObject(f.addOn)
	f.refused = (&Reconciler{AllNamespaces: true}).checkPermissions(t.Context(), nil, key, f.setup.Permissions)

	p := decide(f)
	left := []*rbacv1.RoleBinding{had}
	for _, s := range p.bindings {
		switch s.Verb {
		case reconcile.Delete:
			left = nil
		case reconcile.Patch, reconcile.Replace, reconcile.Create:
			left = []*rbacv1.RoleBinding{s.After}
		case reconcile.Keep:
		}
	}
	for _, binding := range left {
		assert.NotContains(t, binding.Subjects, accountOf(f), "the ServiceAccount keeps %s in all namespaces",
			binding.RoleRef.Name)
	}
}
