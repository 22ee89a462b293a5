package template_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/template"
)

func kubeClient(permissions ...addonv1alpha1.HubPermissionConfig) addonv1alpha1.RegistrationSpec {
	return addonv1alpha1.RegistrationSpec{
		Type:       addonv1alpha1.RegistrationTypeKubeClient,
		KubeClient: &addonv1alpha1.KubeClientRegistrationConfig{HubPermissions: permissions},
	}
}

func signer(name string, subject *addonv1alpha1.Subject) addonv1alpha1.RegistrationSpec {
	return addonv1alpha1.RegistrationSpec{
		Type: addonv1alpha1.RegistrationTypeCustomSigner,
		CustomSigner: &addonv1alpha1.CustomSignerRegistrationConfig{
			SignerName: name, Subject: subject, SigningCA: addonv1alpha1.SigningCARef{Name: "ca"},
		},
	}
}

func TestATemplateHasNoMoreRegistrationsThanItNeeds(t *testing.T) {
	of := &template.Template{Name: "t", Registration: slices.Repeat([]addonv1alpha1.RegistrationSpec{kubeClient()}, 32)}
	_, err := template.Registrations(of, "c1", "a")
	require.NoError(t, err)
	of.Registration = append(of.Registration, kubeClient())
	_, err = template.Registrations(of, "c1", "a")
	require.ErrorContains(t, err, "there are 33 registrations, and a template may have 32")
	var invalid *addon.InvalidError
	require.ErrorAs(t, err, &invalid)
}

// Shows: hub/registrations
func TestRegistrations(t *testing.T) {
	standard := addonv1beta1.BaseSubject{
		User: "system:open-cluster-management:cluster:c1:addon:a:agent:a-agent",
		Groups: []string{
			"system:open-cluster-management:cluster:c1:addon:a", "system:open-cluster-management:addon:a",
		},
	}
	kube := addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
			Subject: addonv1beta1.KubeClientSubject{BaseSubject: standard},
		},
	}
	tests := map[string]struct {
		registration []addonv1alpha1.RegistrationSpec
		want         []addonv1beta1.RegistrationConfig
	}{
		"none":          {},
		"a kube client": {[]addonv1alpha1.RegistrationSpec{kubeClient()}, []addonv1beta1.RegistrationConfig{kube}},
		"a kube client without details": {
			[]addonv1alpha1.RegistrationSpec{{Type: addonv1alpha1.RegistrationTypeKubeClient}},
			[]addonv1beta1.RegistrationConfig{kube},
		},
		"two kube clients are one identity": {
			[]addonv1alpha1.RegistrationSpec{kubeClient(), kubeClient()}, []addonv1beta1.RegistrationConfig{kube},
		},
		"a custom signer without a subject": {
			[]addonv1alpha1.RegistrationSpec{signer("example.com/s", nil)},
			[]addonv1beta1.RegistrationConfig{{
				Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{
					SignerName: "example.com/s", Subject: addonv1beta1.Subject{BaseSubject: standard},
				},
			}},
		},
		"a subject has no variables": {
			[]addonv1alpha1.RegistrationSpec{signer("example.com/s", &addonv1alpha1.Subject{
				User: "{{CLUSTER_NAME}}", Groups: []string{"{{CLUSTER_NAME}}"},
			})},
			[]addonv1beta1.RegistrationConfig{{
				Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{
					SignerName: "example.com/s", Subject: addonv1beta1.Subject{
						BaseSubject: addonv1beta1.BaseSubject{User: "{{CLUSTER_NAME}}", Groups: []string{"{{CLUSTER_NAME}}"}},
					},
				},
			}},
		},
		"a custom signer with a subject of its own": {
			[]addonv1alpha1.RegistrationSpec{signer("example.com/s", &addonv1alpha1.Subject{
				User: "u", OrganizationUnits: []string{"ou"},
			})},
			[]addonv1beta1.RegistrationConfig{{
				Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{
					SignerName: "example.com/s", Subject: addonv1beta1.Subject{
						BaseSubject: addonv1beta1.BaseSubject{User: "u"}, OrganizationUnits: []string{"ou"},
					},
				},
			}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := template.Registrations(&template.Template{Registration: test.registration}, "c1", "a")
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
			for _, r := range got {
				_, err := csr.ForAddon("c1", "a", r)
				require.NoError(t, err, "the agent can ask for it")
			}
		})
	}
}

func TestRegistrationsThatAreWrong(t *testing.T) {
	tests := map[string]struct {
		registration []addonv1alpha1.RegistrationSpec
		want         string
	}{
		"an unknown type": {
			[]addonv1alpha1.RegistrationSpec{{Type: "Token"}},
			`AddOnTemplate t, .spec.registration[0]: type "Token" is unknown: it must be KubeClient or CustomSigner`,
		},
		"a custom signer without details": {
			[]addonv1alpha1.RegistrationSpec{kubeClient(), {Type: addonv1alpha1.RegistrationTypeCustomSigner}},
			"AddOnTemplate t, .spec.registration[1]: type CustomSigner needs customSigner.signerName",
		},
		"a signer twice": {
			[]addonv1alpha1.RegistrationSpec{signer("s.io/s", nil), signer("s.io/s", nil)},
			"AddOnTemplate t, .spec.registration[1]: signer s.io/s is in registration[0] already; one agent gets one " +
				"certificate of a signer",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := template.Registrations(&template.Template{Name: "t", Registration: test.registration}, "c1", "a")
			require.EqualError(t, err, test.want)
			assert.True(t, addon.IsInvalid(err))
		})
	}
}

func current(role string) addonv1alpha1.HubPermissionConfig {
	return addonv1alpha1.HubPermissionConfig{
		Type:           addonv1alpha1.HubPermissionsBindingCurrentCluster,
		CurrentCluster: &addonv1alpha1.CurrentClusterBindingConfig{ClusterRoleName: role},
	}
}

func single(namespace, kind, name string) addonv1alpha1.HubPermissionConfig {
	return addonv1alpha1.HubPermissionConfig{
		Type: addonv1alpha1.HubPermissionsBindingSingleNamespace,
		SingleNamespace: &addonv1alpha1.SingleNamespaceBindingConfig{
			Namespace: namespace, RoleRef: rbacv1.RoleRef{Kind: kind, Name: name},
		},
	}
}

// Shows: hub/permissions
func TestPermissions(t *testing.T) {
	read := &template.Template{Registration: []addonv1alpha1.RegistrationSpec{
		kubeClient(current("cm-admin"), single("shared", "Role", "cm-reader")),
		signer("s.io/s", nil),
		kubeClient(single("c1", "ClusterRole", "view")),
	}}
	got, err := template.Permissions(read, "c1", "a")
	require.NoError(t, err)
	group := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: name}}
	}
	here := group("system:open-cluster-management:cluster:c1:addon:a")
	ref := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: kind, Name: name}
	}
	assert.Equal(t, []addon.Permission{
		{Namespace: "c1", RoleRef: ref("ClusterRole", "cm-admin"), Subjects: here},
		{Namespace: "shared", RoleRef: ref("Role", "cm-reader"), Subjects: here},
		{Namespace: "c1", RoleRef: ref("ClusterRole", "view"), Subjects: here},
	}, got, "no agent of another cluster gets a role")
}

func TestPermissionsThatAreWrong(t *testing.T) {
	tests := map[string]struct {
		permission addonv1alpha1.HubPermissionConfig
		want       string
	}{
		"an unknown type": {
			addonv1alpha1.HubPermissionConfig{Type: "All"},
			`AddOnTemplate t, .spec.registration[0]: kubeClient.hubPermissions[0]: type "All" is unknown: it must be ` +
				"CurrentCluster, SingleNamespace or AllNamespaces",
		},
		"a cluster role without a name": {
			current(""),
			"AddOnTemplate t, .spec.registration[0]: kubeClient.hubPermissions[0]: type CurrentCluster needs " +
				"currentCluster.clusterRoleName",
		},
		"all namespaces without a name": {
			addonv1alpha1.HubPermissionConfig{Type: "AllNamespaces"},
			"AddOnTemplate t, .spec.registration[0]: kubeClient.hubPermissions[0]: type AllNamespaces needs " +
				"allNamespaces.clusterRoleName",
		},
		"a single namespace without a name": {
			single("", "Role", "r"),
			"AddOnTemplate t, .spec.registration[0]: kubeClient.hubPermissions[0]: type SingleNamespace needs " +
				"singleNamespace.namespace, singleNamespace.roleRef.kind and singleNamespace.roleRef.name",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := template.Permissions(&template.Template{
				Name: "t", Registration: []addonv1alpha1.RegistrationSpec{kubeClient(test.permission)},
			}, "c1", "a")
			require.EqualError(t, err, test.want)
			assert.True(t, addon.IsInvalid(err))
		})
	}
}

// Shows: registration/template-registrations
func TestSigningSecret(t *testing.T) {
	elsewhere := signer("s.io/two", nil)
	elsewhere.CustomSigner.SigningCA.Namespace = "own"
	read := &template.Template{Registration: []addonv1alpha1.RegistrationSpec{
		kubeClient(), signer("s.io/one", nil), elsewhere,
	}}
	one, found := template.SigningSecret(read, "s.io/one", "home")
	assert.True(t, found)
	assert.Equal(t, types.NamespacedName{Namespace: "home", Name: "ca"}, one)
	two, found := template.SigningSecret(read, "s.io/two", "home")
	assert.True(t, found)
	assert.Equal(t, types.NamespacedName{Namespace: "own", Name: "ca"}, two)
	_, found = template.SigningSecret(read, "s.io/three", "home")
	assert.False(t, found)
}
