package approve

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/message"
)

const (
	// signerGRPC is the signer of OCM's gRPC driver, whose certificates are identities of clusters.
	signerGRPC = "open-cluster-management.io/grpc"
	// reservedPrefix starts the users and groups that Kubernetes and Open Cluster Management give a meaning to.
	reservedPrefix = "system:"
)

// CheckCustomSigner returns an error for the author of an add-on if a signer cannot be its custom signer. A certificate
// of a signer of Kubernetes is an identity on the hub itself, and its subject would be the author's choice.
func CheckCustomSigner(signer string) error {
	domain, path, found := strings.Cut(strings.ToLower(strings.TrimSpace(signer)), "/")
	if !found || domain == "" || path == "" {
		return fmt.Errorf("signer %s is not of the form domain/name", message.Quote(signer))
	}
	for _, reserved := range []string{"kubernetes.io", "k8s.io"} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			return fmt.Errorf("signer %s belongs to Kubernetes (%s) and is never a custom signer: name a signer in a domain "+
				"of your own; for access to the API server of the hub use type KubeClient", message.Quote(signer), reserved)
		}
	}
	if domain+"/"+path == signerGRPC {
		return fmt.Errorf("signer %s belongs to the registration of clusters and is never a custom signer: name a signer "+
			"in a domain of your own", message.Quote(signer))
	}
	return nil
}

// CheckCustomSubject returns an error for the author of an add-on if a custom signer cannot have the subject. Names
// that begin with "system:" are those of Kubernetes and of clusters, so of them an add-on gets only its own.
func CheckCustomSubject(cluster, addon string, subject addonv1beta1.Subject) error {
	var foreign []string
	if strings.HasPrefix(subject.User, reservedPrefix) && !ownUser(cluster, addon, subject.User) {
		foreign = append(foreign, "user "+message.Quote(subject.User))
	}
	for _, group := range subject.Groups {
		if strings.HasPrefix(group, reservedPrefix) && !ownGroup(cluster, addon, group) {
			foreign = append(foreign, "group "+message.Quote(group))
		}
	}
	for _, unit := range subject.OrganizationUnits {
		if strings.HasPrefix(unit, reservedPrefix) {
			foreign = append(foreign, "organizational unit "+message.Quote(unit))
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	return fmt.Errorf("%s is not the add-on's own: names that begin with %q belong to Kubernetes and to clusters; leave "+
		"the subject out to get the identity of the add-on, or use other names", strings.Join(foreign, ", "),
		reservedPrefix)
}

// ownUser reports whether a user is an agent of the add-on on the cluster.
func ownUser(cluster, addon, user string) bool {
	id, ok := csr.ParseAddonUser(user)
	return ok && id.Cluster == cluster && id.Addon == addon
}

// ownGroup reports whether a group is one that every agent of the add-on on the cluster may be in.
func ownGroup(cluster, addon, group string) bool {
	return group == groupAuthenticated || slices.Contains(csr.AddonGroups(cluster, addon), group)
}

// checkIdentity returns an error if the hub approves no certificate with this content, whatever a definition asks for;
// nil when it may. It is the last line before an approval: for the API server of the hub an add-on gets identities of
// its own, and only a signer of its own signs for anything else.
func checkIdentity(cluster, addon string, expected csr.Request) error {
	if expected.Signer == certificatesv1.KubeAPIServerClientSignerName {
		if !ownUser(cluster, addon, expected.User) {
			return fmt.Errorf("user %s is not an agent of this add-on on this cluster", message.Quote(expected.User))
		}
		for _, group := range expected.Groups {
			if !ownGroup(cluster, addon, group) {
				return fmt.Errorf("group %s is not one of this add-on on this cluster", message.Quote(group))
			}
		}
		if len(expected.OrganizationalUnits) > 0 {
			return errors.New("organizational units have no meaning for the API server of the hub")
		}
		return nil
	}
	if err := CheckCustomSigner(expected.Signer); err != nil {
		return err
	}
	return CheckCustomSubject(cluster, addon, addonv1beta1.Subject{
		BaseSubject:       addonv1beta1.BaseSubject{User: expected.User, Groups: expected.Groups},
		OrganizationUnits: expected.OrganizationalUnits,
	})
}
