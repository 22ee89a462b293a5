package cluster

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// rolePrefix is the prefix of the names of all roles and bindings of clusters.
	rolePrefix = "open-cluster-management:managedcluster:"
	// roleRegistration and roleWork are the two ClusterRoles that all clusters share.
	roleRegistration = rolePrefix + "registration"
	roleWork         = rolePrefix + "work"
	// suffixRegistration and suffixWork end the names of the RoleBindings of a cluster.
	suffixRegistration, suffixWork = ":registration", ":work"
	// groupRegister is the virtual API group of the right to renew a certificate.
	groupRegister = "register.open-cluster-management.io"
)

// grants is the access of one cluster's agent; a nil member does not exist.
type grants struct {
	role         *rbacv1.ClusterRole
	binding      *rbacv1.ClusterRoleBinding
	registration *rbacv1.RoleBinding
	work         *rbacv1.RoleBinding
}

// renderGrants returns the access of an accepted or denied cluster (docs/reference/registration.md, "Access of a
// cluster").
func renderGrants(cluster string, accepted bool) grants {
	name := rolePrefix + cluster
	labels := map[string]string{names.LabelClusterName: cluster}
	g := grants{
		role: &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: clusterRules(cluster, accepted),
		},
		binding: &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Subjects:   subjects(cluster),
			RoleRef:    roleRef(name),
		},
	}
	if !accepted {
		return g
	}
	g.registration = &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name + suffixRegistration, Namespace: cluster, Labels: labels},
		Subjects:   subjects(cluster),
		RoleRef:    roleRef(roleRegistration),
	}
	g.work = &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + suffixWork, Namespace: cluster, Labels: labels,
			Finalizers: []string{names.FinalizerManifestWork},
		},
		Subjects: subjects(cluster),
		RoleRef:  roleRef(roleWork),
	}
	return g
}

// sharedRoles returns the two ClusterRoles that all clusters share, in fixed order. Unlike in OCM, an agent
// may update no Lease of its namespace except its own.
func sharedRoles() []*rbacv1.ClusterRole {
	labels := map[string]string{names.LabelClusterName: ""}
	return []*rbacv1.ClusterRole{
		{
			ObjectMeta: metav1.ObjectMeta{Name: roleRegistration, Labels: labels},
			Rules: []rbacv1.PolicyRule{
				// The lease of the cluster. Our agent only gets it; agents of OCM also watch.
				rule(coordinationv1.GroupName, "leases", "get", "list", "watch"),
				named(rule(coordinationv1.GroupName, "leases", "update"), names.LeaseCluster),
				// Registrations of add-ons, their progress and their health.
				rule(addonv1beta1.GroupName, "managedclusteraddons", "get", "list", "watch"),
				rule(addonv1beta1.GroupName, "managedclusteraddons/status", "patch", "update"),
				// Events about the availability of the cluster.
				rule(eventsv1.GroupName, "events", "create"),
			},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: roleWork, Labels: labels},
			Rules: []rbacv1.PolicyRule{
				// Events about works: ours are in events.k8s.io, those of OCM's agents in the core group.
				{
					APIGroups: []string{corev1.GroupName, eventsv1.GroupName},
					Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"},
				},
				// Works, and the finalizer that is set before their objects are applied.
				rule(workv1.GroupName, "manifestworks", "get", "list", "watch", "update", "patch"),
				rule(workv1.GroupName, "manifestworks/status", "patch", "update"),
			},
		},
	}
}

// clusterRules are the rights of an agent outside its namespace.
func clusterRules(cluster string, accepted bool) []rbacv1.PolicyRule {
	if !accepted {
		// The agent must see when its cluster is accepted again.
		return []rbacv1.PolicyRule{named(rule(clusterv1.GroupName, "managedclusters", "get", "list", "watch"), cluster)}
	}
	return []rbacv1.PolicyRule{
		// Renewals and certificates of add-ons. RBAC cannot distinguish requests.
		rule("certificates.k8s.io", "certificatesigningrequests", "create", "get", "list", "watch"),
		// The hub manager checks this right before it approves a renewal. It has no resourceNames: the name of a request
		// proves nothing.
		rule(groupRegister, "managedclusters/clientcertificates", "renew"),
		// Agents of OCM add the addresses of their cluster to the spec; all agents report status.
		named(rule(clusterv1.GroupName, "managedclusters", "get", "list", "update", "watch"), cluster),
		named(rule(clusterv1.GroupName, "managedclusters/status", "patch", "update"), cluster),
	}
}

// subjects are the two groups that the agents of a cluster are in.
func subjects(cluster string) []rbacv1.Subject {
	return []rbacv1.Subject{
		{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: csr.ClusterGroup(cluster)},
		{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: csr.ClusterGroupIAM(cluster)},
	}
}

func roleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func named(r rbacv1.PolicyRule, name string) rbacv1.PolicyRule {
	r.ResourceNames = []string{name}
	return r
}
