package template

import (
	"fmt"
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
)

// CheckTrust returns why a template must not be used for an add-on on a cluster, no matter who consented to its roles;
// nil when it may. home is the namespace of the hub manager. Nothing of a template that asks for too much is used,
// neither credentials nor permissions nor objects. The error is an addon.InvalidError.
func CheckTrust(t *Template, cluster, addOn, home string) error {
	registrations, err := Registrations(t, cluster, addOn)
	if err != nil {
		return err
	}
	for _, registration := range registrations {
		custom := registration.CustomSigner
		if custom == nil {
			continue
		}
		if err := approve.CheckCustomSigner(custom.SignerName); err != nil {
			return t.invalidSigner(custom.SignerName, err)
		}
		if err := approve.CheckCustomSubject(cluster, addOn, custom.Subject); err != nil {
			return t.invalidSigner(custom.SignerName, err)
		}
	}
	permissions, err := Permissions(t, cluster, addOn)
	if err != nil {
		return err
	}
	for _, permission := range permissions {
		err := names.CheckPermission(permission.Namespace, permission.RoleRef.Name, home)
		if permission.AllNamespaces {
			err = names.CheckEverywhere(permission.RoleRef.Name)
		}
		if err != nil {
			return t.invalid(".spec.registration[].kubeClient.hubPermissions: " + err.Error())
		}
	}
	return nil
}

// Withheld returns why an add-on does not get what a template asks of the hub; nil when it gets all. A template is
// trusted for the add-on in its spec.addonName only, and any other add-on that uses it is deployed without roles and
// without certificates of custom signers. The error is an addon.InvalidError.
func Withheld(t *Template, addOn string) error {
	if t.AddOn == addOn || !slices.ContainsFunc(t.Registration, needsTrust) {
		return nil
	}
	return t.invalid(fmt.Sprintf(".spec.addonName is %q, so its hub permissions and its certificates of custom signers "+
		"are for that add-on and not for %s, which is deployed without them: create an AddOnTemplate of its own for %s",
		t.AddOn, addOn, addOn))
}

// needsTrust reports whether a registration asks for roles on the hub or for certificates of a custom signer.
func needsTrust(registration addonv1alpha1.RegistrationSpec) bool {
	return registration.Type == addonv1alpha1.RegistrationTypeCustomSigner ||
		(registration.KubeClient != nil && len(registration.KubeClient.HubPermissions) > 0)
}

// trusted returns a template as it counts on the hub for an add-on. What is withheld is left out.
func (t *Template) trusted(addOn string) *Template {
	if Withheld(t, addOn) == nil {
		return t
	}
	less := *t
	less.Registration = nil
	for _, registration := range t.Registration {
		switch {
		case registration.Type == addonv1alpha1.RegistrationTypeCustomSigner:
			continue
		case needsTrust(registration):
			registration.KubeClient = nil
		}
		less.Registration = append(less.Registration, registration)
	}
	return &less
}

// invalidSigner returns the error about a custom signer of a template.
func (t *Template) invalidSigner(signer string, err error) error {
	for i, registration := range t.Registration {
		if registration.CustomSigner != nil && registration.CustomSigner.SignerName == signer {
			return t.invalidAt(i, "customSigner: "+err.Error())
		}
	}
	return t.invalid(err.Error())
}
