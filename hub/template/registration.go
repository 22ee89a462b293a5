package template

import (
	"cmp"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/addon"
)

// maxRegistrations is how many registrations a template may have. Each pod has their Secrets, and one is usual.
const maxRegistrations = 32

// bindingAllNamespaces is the type of a permission that OCM proposes, and for which the API module has no constant.
const bindingAllNamespaces addonv1alpha1.HubPermissionsBindingType = "AllNamespaces"

// agentSuffix is the suffix of the agent's name, after the name of the add-on.
const agentSuffix = "-agent"

// Registrations returns the credentials that the agent of an add-on gets on the hub (docs/reference/hub.md,
// "Registrations of a template"). Several entries of type KubeClient are one credential; they differ in permissions
// only. The error is an addon.InvalidError.
func Registrations(t *Template, cluster, addOn string) ([]addonv1beta1.RegistrationConfig, error) {
	standard := addonv1beta1.BaseSubject{
		User: csr.AddonUser(cluster, addOn, addOn+agentSuffix), Groups: csr.AddonGroups(cluster, addOn),
	}
	var all []addonv1beta1.RegistrationConfig
	var kubeClient bool
	if n := len(t.Registration); n > maxRegistrations {
		return nil, t.invalidAt(maxRegistrations, fmt.Sprintf("there are %d registrations, and a template may have %d",
			n, maxRegistrations))
	}
	signers := map[string]int{}
	for i, registration := range t.Registration {
		switch registration.Type {
		case addonv1alpha1.RegistrationTypeKubeClient:
			if !kubeClient {
				all = append(all, addonv1beta1.RegistrationConfig{
					Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
						Subject: addonv1beta1.KubeClientSubject{BaseSubject: standard},
					},
				})
			}
			kubeClient = true
		case addonv1alpha1.RegistrationTypeCustomSigner:
			custom := registration.CustomSigner
			if custom == nil || custom.SignerName == "" {
				return nil, t.invalidAt(i, "type CustomSigner needs customSigner.signerName")
			}
			if earlier, taken := signers[custom.SignerName]; taken {
				return nil, t.invalidAt(i, fmt.Sprintf("signer %s is in registration[%d] already; one agent gets one "+
					"certificate of a signer", custom.SignerName, earlier))
			}
			signers[custom.SignerName] = i
			all = append(all, addonv1beta1.RegistrationConfig{
				Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{
					SignerName: custom.SignerName, Subject: customSubject(custom.Subject, standard),
				},
			})
		default:
			return nil, t.invalidAt(i, fmt.Sprintf("type %q is unknown: it must be KubeClient or CustomSigner",
				registration.Type))
		}
	}
	return all, nil
}

// customSubject returns exactly the subject that the template states; by default, that of a kube client.
func customSubject(stated *addonv1alpha1.Subject, standard addonv1beta1.BaseSubject) addonv1beta1.Subject {
	if stated == nil {
		return addonv1beta1.Subject{BaseSubject: standard}
	}
	subject := stated.DeepCopy()
	return addonv1beta1.Subject{
		BaseSubject:       addonv1beta1.BaseSubject{User: subject.User, Groups: subject.Groups},
		OrganizationUnits: subject.OrganizationUnits,
	}
}

// SigningSecret returns the Secret of the certificate authority for a custom signer; false when the template does not
// name the signer. A Secret without a namespace is in home, the namespace of the hub manager.
func SigningSecret(t *Template, signerName, home string) (types.NamespacedName, bool) {
	for _, registration := range t.Registration {
		custom := registration.CustomSigner
		if registration.Type != addonv1alpha1.RegistrationTypeCustomSigner || custom == nil ||
			custom.SignerName != signerName {
			continue
		}
		return types.NamespacedName{
			Namespace: cmp.Or(custom.SigningCA.Namespace, home), Name: custom.SigningCA.Name,
		}, true
	}
	return types.NamespacedName{}, false
}

// Permissions returns the roles on the hub that the agent is bound to (docs/reference/hub.md, "Hub permissions"). Only
// the agent of the cluster is a subject. The error is an addon.InvalidError.
func Permissions(t *Template, cluster, addOn string) ([]addon.Permission, error) {
	subjects := []rbacv1.Subject{{
		APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: csr.AddonGroups(cluster, addOn)[0],
	}}
	var all []addon.Permission
	for i, registration := range t.Registration {
		if registration.Type != addonv1alpha1.RegistrationTypeKubeClient || registration.KubeClient == nil {
			continue
		}
		for j, permission := range registration.KubeClient.HubPermissions {
			where := fmt.Sprintf("kubeClient.hubPermissions[%d]", j)
			switch permission.Type {
			case addonv1alpha1.HubPermissionsBindingCurrentCluster:
				if permission.CurrentCluster == nil || permission.CurrentCluster.ClusterRoleName == "" {
					return nil, t.invalidAt(i, where+": type CurrentCluster needs currentCluster.clusterRoleName")
				}
				all = append(all, addon.Permission{
					Namespace: cluster, Subjects: subjects, RoleRef: rbacv1.RoleRef{
						APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: permission.CurrentCluster.ClusterRoleName,
					},
				})
			case addonv1alpha1.HubPermissionsBindingSingleNamespace:
				single := permission.SingleNamespace
				if single == nil || single.Namespace == "" || single.RoleRef.Kind == "" || single.RoleRef.Name == "" {
					return nil, t.invalidAt(i, where+": type SingleNamespace needs singleNamespace.namespace, "+
						"singleNamespace.roleRef.kind and singleNamespace.roleRef.name")
				}
				ref := single.RoleRef
				ref.APIGroup = cmp.Or(ref.APIGroup, rbacv1.GroupName)
				all = append(all, addon.Permission{Namespace: single.Namespace, RoleRef: ref, Subjects: subjects})
			case bindingAllNamespaces:
				role := t.everywhere[[2]int{i, j}]
				if role == "" {
					return nil, t.invalidAt(i, where+": type AllNamespaces needs allNamespaces.clusterRoleName")
				}
				all = append(all, addon.Permission{AllNamespaces: true, Subjects: subjects, RoleRef: rbacv1.RoleRef{
					APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role,
				}})
			default:
				return nil, t.invalidAt(i, fmt.Sprintf("%s: type %q is unknown: it must be CurrentCluster, SingleNamespace or "+
					"AllNamespaces", where, permission.Type))
			}
		}
	}
	return all, nil
}

// invalidAt returns the error about a registration.
func (t *Template) invalidAt(index int, message string) error {
	return t.invalid(fmt.Sprintf(".spec.registration[%d]: %s", index, message))
}

// invalid returns the error about a template.
func (t *Template) invalid(message string) error {
	return &addon.InvalidError{Message: fmt.Sprintf("AddOnTemplate %s, %s", t.Name, message)}
}
