package cluster

import (
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// defaultSet is the cluster set of clusters that are in no other set.
const defaultSet = "default"

// ensureRole plans the step from have to want; none when they match.
func ensureRole(have, want *rbacv1.ClusterRole) []step {
	if have == nil {
		return []step{{Verb: reconcile.Create, After: want}}
	}
	if hasLabels(have, want.Labels) && have.AggregationRule == nil &&
		equality.Semantic.DeepEqual(have.Rules, want.Rules) {
		return nil
	}
	after := have.DeepCopy()
	addLabels(after, want.Labels)
	after.Rules, after.AggregationRule = want.Rules, nil
	return []step{{Verb: reconcile.Patch, Before: have, After: after}}
}

// decideShared plans the ClusterRoles that all clusters share: they exist as long as a cluster does.
func decideShared(have map[string]*rbacv1.ClusterRole, wanted bool) []step {
	var steps []step
	for _, want := range sharedRoles() {
		role := have[want.Name]
		switch {
		case wanted:
			steps = append(steps, ensureRole(role, want)...)
		case ours(role, ""):
			steps = append(steps, step{Verb: reconcile.Delete, Before: role})
		}
	}
	return steps
}

// ensureClusterBinding plans the steps from have to want. The role of a binding is immutable, so a binding of another
// role is replaced.
func ensureClusterBinding(have, want *rbacv1.ClusterRoleBinding) []step {
	switch {
	case have == nil:
		return []step{{Verb: reconcile.Create, After: want}}
	case have.RoleRef != want.RoleRef:
		return []step{{Verb: reconcile.Delete, Before: have}, {Verb: reconcile.Create, After: want}}
	}
	if hasLabels(have, want.Labels) && slices.Equal(have.Subjects, want.Subjects) {
		return nil
	}
	after := have.DeepCopy()
	addLabels(after, want.Labels)
	after.Subjects = want.Subjects
	return []step{{Verb: reconcile.Patch, Before: have, After: after}}
}

// ensureBinding plans the steps from have to want. A binding that is being deleted loses its finalizer and is created
// again, as is one of another role.
func ensureBinding(have, want *rbacv1.RoleBinding) []step {
	if have == nil {
		return []step{{Verb: reconcile.Create, After: want}}
	}
	if !have.DeletionTimestamp.IsZero() || have.RoleRef != want.RoleRef {
		after := have.DeepCopy()
		var steps []step
		if dropFinalizer(after, names.FinalizerManifestWork) {
			steps = append(steps, step{Verb: reconcile.Patch, Before: have, After: after})
		}
		if have.DeletionTimestamp.IsZero() {
			steps = append(steps, step{Verb: reconcile.Delete, Before: have})
		}
		return append(steps, step{Verb: reconcile.Create, After: want})
	}
	guarded := !slices.ContainsFunc(want.Finalizers, func(f string) bool { return !slices.Contains(have.Finalizers, f) })
	if guarded && hasLabels(have, want.Labels) && slices.Equal(have.Subjects, want.Subjects) {
		return nil
	}
	after := have.DeepCopy()
	addLabels(after, want.Labels)
	for _, finalizer := range want.Finalizers {
		addFinalizer(after, finalizer)
	}
	after.Subjects = want.Subjects
	return []step{{Verb: reconcile.Patch, Before: have, After: after}}
}

// ours reports whether an object exists and belongs to this cluster alone.
func ours[T interface {
	comparable
	metav1.Object
}](o T, cluster string) bool {
	var absent T
	return o != absent && o.GetLabels()[names.LabelClusterName] == cluster
}

// hasLabels reports whether an object has labels.
func hasLabels(o metav1.Object, labels map[string]string) bool {
	have := o.GetLabels()
	for key, value := range labels {
		if old, ok := have[key]; !ok || old != value {
			return false
		}
	}
	return true
}

// addLabels puts labels on an object and reports whether that changed anything.
func addLabels(o metav1.Object, labels map[string]string) bool {
	if hasLabels(o, labels) {
		return false
	}
	o.SetLabels(reconcile.WithEntries(o.GetLabels(), labels))
	return true
}

// joinDefaultSet adds a cluster without a cluster set to the default set, and reports whether it did.
func joinDefaultSet(cluster *clusterv1.ManagedCluster) bool {
	if cluster.Labels[clusterv1beta2.ClusterSetLabel] != "" {
		return false
	}
	return addLabels(cluster, map[string]string{clusterv1beta2.ClusterSetLabel: defaultSet})
}

func addFinalizer(o metav1.Object, finalizer string) bool {
	if slices.Contains(o.GetFinalizers(), finalizer) {
		return false
	}
	o.SetFinalizers(append(o.GetFinalizers(), finalizer))
	return true
}

func dropFinalizer(o metav1.Object, finalizers ...string) bool {
	kept := make([]string, 0, len(o.GetFinalizers()))
	for _, have := range o.GetFinalizers() {
		if !slices.Contains(finalizers, have) {
			kept = append(kept, have)
		}
	}
	changed := len(kept) != len(o.GetFinalizers())
	o.SetFinalizers(kept)
	return changed
}

// foreignNamespace returns why the namespace with the name of the cluster is not its own; nil when it is, or when there
// is none. Tools of OCM label a namespace before they import a cluster.
func foreignNamespace(f facts) error {
	if f.namespace == nil || f.namespace.Labels[names.LabelOCMCluster] == f.name {
		return nil
	}
	return names.CheckNamespace(f.namespace, f.name)
}

// worksGone reports whether the API server confirmed that no ManifestWork is left.
func worksGone(f facts) bool {
	return len(f.works) == 0 && asked(f) && !f.live.works
}

// removeGrants deletes the access in the namespace and, with all, also the cluster-wide access. The RoleBinding for
// ManifestWorks keeps its finalizer until free, so that the agent can clean up.
func removeGrants(f facts, all, free bool) []step {
	var steps []step
	if all && ours(f.have.binding, f.name) {
		steps = append(steps, step{Verb: reconcile.Delete, Before: f.have.binding})
	}
	if all && ours(f.have.role, f.name) {
		steps = append(steps, step{Verb: reconcile.Delete, Before: f.have.role})
	}
	if ours(f.have.registration, f.name) {
		steps = append(steps, step{Verb: reconcile.Delete, Before: f.have.registration})
	}
	if !ours(f.have.work, f.name) {
		return steps
	}
	if freed := f.have.work.DeepCopy(); free && dropFinalizer(freed, names.FinalizerManifestWork) {
		steps = append(steps, step{Verb: reconcile.Patch, Before: f.have.work, After: freed})
	}
	if f.have.work.DeletionTimestamp.IsZero() {
		steps = append(steps, step{Verb: reconcile.Delete, Before: f.have.work})
	}
	return steps
}

// shrinkGrants reduces the access of a denied cluster to reading its own ManagedCluster.
func shrinkGrants(f facts) []step {
	want := renderGrants(f.name, false)
	steps := ensureRole(f.have.role, want.role)
	steps = append(steps, ensureClusterBinding(f.have.binding, want.binding)...)
	return append(steps, removeGrants(f, false, worksGone(f))...)
}

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
