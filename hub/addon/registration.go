package addon

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
)

// Kinds of roles on the hub.
const (
	// KindClusterRole is the kind of a ClusterRole.
	KindClusterRole = "ClusterRole"
	// KindRole is the kind of a Role.
	KindRole = "Role"
)

// KubeClient gives the agents of an add-on access to the API server of the hub. The zero value gives them the default
// identity and no roles.
type KubeClient struct {
	// Agent is the last part of the default user name; empty means the name of the add-on.
	Agent string
	// Subject returns the user and the groups on a cluster; nil means DefaultUser and DefaultGroups. The hub approves only
	// a user of this add-on on this cluster, and no groups but the default ones.
	Subject func(request Request) addonv1beta1.BaseSubject
	// Roles are the roles on the hub that the agents are bound to.
	Roles []HubRole
}

// HubRole is a role on the hub that the agents of an add-on are bound to. It must exist.
type HubRole struct {
	// Kind is KindClusterRole or KindRole; empty means KindClusterRole.
	Kind string
	// Name is the name of the role.
	Name string
	// Namespace is the namespace of the binding. Empty means the namespace of each cluster. In any other namespace, the
	// agent of each cluster that the hub accepts has a binding of its own.
	Namespace string
	// ToUser binds the user of the agent in place of its group.
	ToUser bool
}

// CustomSigner gives the agents of an add-on a certificate of a signer.
type CustomSigner struct {
	// SignerName is the name of the signer, such as example.com/agents.
	SignerName string
	// Subject returns the subject on a cluster; nil means DefaultUser and DefaultGroups.
	Subject func(request Request) addonv1beta1.Subject
	// CA is the Secret on the hub, of type kubernetes.io/tls, with which the hub manager signs. An empty namespace means
	// that of the hub manager. An empty name means that another client signs.
	CA types.NamespacedName
	// Lifetime is the maximum lifetime of a certificate; zero means 24 hours.
	Lifetime time.Duration
}

// DefaultUser returns the user name of the agent of an add-on on a cluster.
func DefaultUser(cluster, addOn, agent string) string { return csr.AddonUser(cluster, addOn, agent) }

// DefaultGroups returns the groups of the agent of an add-on on a cluster: that of the add-on on this cluster and that
// of the add-on on all clusters.
func DefaultGroups(cluster, addOn string) []string { return csr.AddonGroups(cluster, addOn) }

// defaultSubject returns the default identity on a cluster.
func (a *author) defaultSubject(cluster string) addonv1beta1.BaseSubject {
	agent := a.Name
	if a.KubeClient != nil {
		agent = cmp.Or(a.KubeClient.Agent, a.Name)
	}
	return addonv1beta1.BaseSubject{User: DefaultUser(cluster, a.Name, agent), Groups: DefaultGroups(cluster, a.Name)}
}

// kubeSubject returns the identity for the API server of the hub. The error is an InvalidError.
func (a *author) kubeSubject(request Request) (addonv1beta1.BaseSubject, error) {
	cluster := request.Cluster.Name
	if a.KubeClient.Subject == nil {
		return a.defaultSubject(cluster), nil
	}
	subject := a.KubeClient.Subject(request)
	id, ok := csr.ParseAddonUser(subject.User)
	if !ok || id.Cluster != cluster || id.Addon != a.Name {
		return subject, &InvalidError{Message: fmt.Sprintf("KubeClient.Subject returned user %q, which is no agent of this "+
			"add-on on this cluster: use DefaultUser", subject.User)}
	}
	groups := DefaultGroups(cluster, a.Name)
	for _, group := range subject.Groups {
		if !slices.Contains(groups, group) {
			return subject, &InvalidError{Message: fmt.Sprintf("KubeClient.Subject returned group %q, which is not one of this "+
				"add-on on this cluster: use DefaultGroups", group)}
		}
	}
	return subject, nil
}

// registrations returns the credentials on a cluster, and the permissions of the kube client. The error is an
// InvalidError.
func (a *author) registrations(request Request) ([]addonv1beta1.RegistrationConfig, []Permission, error) {
	var all []addonv1beta1.RegistrationConfig
	var permissions []Permission
	if a.KubeClient != nil {
		subject, err := a.kubeSubject(request)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, addonv1beta1.RegistrationConfig{
			Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
				Subject: addonv1beta1.KubeClientSubject{BaseSubject: subject},
			},
		})
		if permissions, err = a.permissions(request.Cluster.Name, subject); err != nil {
			return nil, nil, err
		}
	}
	for _, signer := range a.CustomSigners {
		subject := addonv1beta1.Subject{BaseSubject: a.defaultSubject(request.Cluster.Name)}
		if signer.Subject != nil {
			subject = signer.Subject(request)
		}
		if err := approve.CheckCustomSubject(request.Cluster.Name, a.Name, subject); err != nil {
			return nil, nil, &InvalidError{Message: fmt.Sprintf("the subject for signer %s: %v", signer.SignerName, err)}
		}
		all = append(all, addonv1beta1.RegistrationConfig{
			Type:         addonv1beta1.CustomSigner,
			CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: signer.SignerName, Subject: subject},
		})
	}
	return all, permissions, nil
}

// permissions returns the roles of the agent with this identity. A role for a group that the agent is not in would
// grant nothing, which is an InvalidError. Outside the namespace of the cluster, an agent that is only in the group of
// the agents of all clusters is bound as a user: a role for that group would stay when the cluster is denied.
func (a *author) permissions(cluster string, identity addonv1beta1.BaseSubject) ([]Permission, error) {
	groups := DefaultGroups(cluster, a.Name)
	var all []Permission
	for _, role := range a.KubeClient.Roles {
		p := Permission{Namespace: cmp.Or(role.Namespace, cluster), RoleRef: role.ref()}
		kind, name := rbacv1.GroupKind, groups[0]
		switch {
		case role.ToUser, p.Namespace != cluster && slices.Contains(identity.Groups, groups[1]) &&
			!slices.Contains(identity.Groups, groups[0]):
			kind, name = rbacv1.UserKind, identity.User
		}
		if kind == rbacv1.GroupKind && !slices.Contains(identity.Groups, name) {
			return nil, &InvalidError{Message: fmt.Sprintf("%s %s is bound to group %s, and KubeClient.Subject returned only "+
				"groups %q", p.RoleRef.Kind, p.RoleRef.Name, name, strings.Join(identity.Groups, ", "))}
		}
		p.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}}
		all = append(all, p)
	}
	return all, nil
}

func (r HubRole) ref() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: cmp.Or(r.Kind, KindClusterRole), Name: r.Name}
}

// sharedPermissions returns the roles outside of the namespaces of clusters.
func (a *author) sharedPermissions() []Permission {
	if a.KubeClient == nil {
		return nil
	}
	var all []Permission
	for _, role := range a.KubeClient.Roles {
		if role.Namespace != "" {
			all = append(all, Permission{Namespace: role.Namespace, RoleRef: role.ref(), Subjects: []rbacv1.Subject{{
				APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: DefaultGroups("", a.Name)[1],
			}}})
		}
	}
	return all
}

// signingCA returns the CA for a signer; false when the add-on does not sign for it.
func (a *author) signingCA(name string) (SigningCA, bool) {
	at := slices.IndexFunc(a.CustomSigners, func(s CustomSigner) bool { return s.SignerName == name && s.CA.Name != "" })
	if at < 0 {
		return SigningCA{}, false
	}
	ca := SigningCA{Secret: a.CustomSigners[at].CA, Lifetime: a.CustomSigners[at].Lifetime}
	for i, other := range a.CustomSigners {
		if i != at && other.CA == ca.Secret {
			ca.SharedWith = append(ca.SharedWith, "signer "+other.SignerName)
		}
	}
	slices.Sort(ca.SharedWith)
	return ca, true
}
