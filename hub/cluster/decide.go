package cluster

import (
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/lease"
)

// phaseOf returns the phase of a cluster; the first rule that matches wins.
func phaseOf(name string, cluster *clusterv1.ManagedCluster) phase {
	switch {
	case cluster == nil:
		return phaseGone
	case !cluster.DeletionTimestamp.IsZero():
		return phaseDeleting
	case cluster.Spec.HubAcceptsClient && names.CheckCluster(name) != nil:
		return phaseRefused
	case cluster.Spec.HubAcceptsClient:
		return phaseAccepted
	case names.AcceptedBefore(cluster, cluster.Status.Conditions) && names.CheckCluster(name) == nil:
		return phaseDenied
	}
	return phaseNew
}

// needsWorks reports whether the decision depends on the ManifestWorks of the namespace.
func needsWorks(p phase, f facts) bool {
	return p == phaseDeleting || vanished(f) || (p != phaseAccepted && f.have.work != nil)
}

// needsLiveCheck reports whether access is about to be removed because the caches show nothing that needs it.
func needsLiveCheck(p phase, f facts) bool {
	switch {
	case vanished(f):
		return true
	case len(f.works) > 0 || (p == phaseDeleting && len(f.addons) > 0):
		return false
	}
	return f.have.work != nil || (p == phaseDeleting && !emptyConfirmed(f.cluster))
}

// needsConfirming reports whether the plan gives access, or takes or deletes anything, so that the cluster is read
// without the cache. All that is planned for a cluster that is denied, new or being deleted takes something.
func needsConfirming(f facts, p plan) bool {
	switch p.phase {
	case phaseAccepted:
		return givesAccess(p.phase, f)
	case phaseDenied, phaseNew, phaseDeleting:
		return slices.ContainsFunc(p.stages, func(stage []step) bool { return len(stage) > 0 })
	case phaseGone, phaseRefused:
	}
	return false
}

// givesAccess reports whether an accepted cluster is about to get its namespace or access.
func givesAccess(p phase, f facts) bool {
	return p == phaseAccepted && accessBlocked(f) == nil && (f.namespace == nil || f.have.role == nil ||
		f.have.binding == nil || f.have.registration == nil || f.have.work == nil)
}

// accessBlocked returns what must happen to the namespace of a cluster before its agent gets access; nil for nothing.
func accessBlocked(f facts) error {
	if ns := f.namespace; ns != nil && !ns.DeletionTimestamp.IsZero() {
		return fmt.Errorf("namespace %s is being deleted, so the cluster cannot be accepted yet; its agent gets access "+
			"when the namespace is gone", f.name)
	}
	return foreignNamespace(f)
}

// decide returns the plan for one cluster.
func decide(f facts) plan {
	p := plan{phase: phaseOf(f.name, f.cluster), foreign: foreignNamespace(f)}
	if p.phase != phaseGone && p.phase != phaseDeleting {
		p.wake = labelsAwaited(f)
	}
	switch p.phase {
	case phaseGone:
		decideGone(f, &p)
		return p
	case phaseNew:
		decideNew(f, &p)
		return p
	case phaseRefused:
		p.refused, p.cluster = names.CheckCluster(f.name), wantedCluster(f)
		return p
	case phaseDeleting:
		decideDeleting(f, &p)
	case phaseAccepted:
		decideAccepted(f, &p)
		p.wake = reconcile.Earliest(p.wake, quietWake(f))
	case phaseDenied:
		p.cluster, p.stages = wantedCluster(f), [][]step{append(recordDenial(f), shrinkGrants(f)...)}
	}
	decideSilence(f, &p)
	p.unknownAddOns = decideUnknownAddOns(f, &p)
	return p
}

// decideNew removes the access that an earlier cluster of the same name left behind, and accepts the new cluster if one
// of its certificate requests is approved without a person. One that was denied when it was deleted is denied again.
func decideNew(f facts, p *plan) {
	p.stages = [][]step{removeGrants(f, true, worksGone(f))}
	p.cluster = wantedCluster(f)
	denied := deniedBefore(f) && names.CheckCluster(f.name) == nil
	if needsApprovedRequest(f, p.phase) {
		p.approvedRequest = approvedRequest(f)
	}
	if !denied && p.approvedRequest == nil {
		decideUnaccepted(f, p)
		return
	}
	if p.cluster == nil {
		p.cluster = f.cluster.DeepCopy()
	}
	if denied {
		annotate(p.cluster, names.AnnotationAcceptedOn, f.now) // The next pass denies it.
		return
	}
	autoAccept(p.cluster, f.now)
}

// decideAccepted plans the namespace, the access and the lease of an accepted cluster.
func decideAccepted(f facts, p *plan) {
	p.cluster = wantedCluster(f)
	if p.blocked = accessBlocked(f); p.blocked != nil {
		return
	}
	want := renderGrants(f.name, true)
	var access []step
	for _, role := range sharedRoles() {
		access = append(access, ensureRole(f.shared[role.Name], role)...)
	}
	access = append(access, ensureRole(f.have.role, want.role)...)
	access = append(access, ensureClusterBinding(f.have.binding, want.binding)...)
	access = append(access, ensureBinding(f.have.registration, want.registration)...)
	access = append(access, ensureBinding(f.have.work, want.work)...)
	p.stages = [][]step{append(ensureNamespace(f), forgetDenial(f)...), append(access, ensureLease(f)...)}
}

// wantedCluster returns the cluster with our finalizer, the annotation of its acceptance, a cluster set, the feature
// labels of its add-ons, the times of its taints and the taint of its health; nil when nothing changes. The finalizer
// comes before acceptance, because add-ons, works and certificate requests may exist by then. A cluster with an
// unusable name gets neither finalizer nor annotation.
func wantedCluster(f facts) *clusterv1.ManagedCluster {
	want := f.cluster.DeepCopy()
	changed := false
	if names.CheckCluster(f.name) == nil {
		changed = addFinalizer(want, names.FinalizerCluster)
		changed = annotateAcceptance(want, f.now) || changed
	}
	changed = joinDefaultSet(want) || changed
	changed = mirrorAddons(want, f.addons, f.now) || changed
	changed = setTaintTimes(want, f.now) || changed
	changed = taint(want, f.now) || changed
	if !changed {
		return nil
	}
	return want
}

// ensureNamespace creates the namespace of the cluster, or labels one that tools of OCM labelled.
func ensureNamespace(f facts) []step {
	labels := map[string]string{names.LabelClusterName: f.name}
	switch {
	case f.namespace == nil:
		return []step{{Verb: reconcile.Create, After: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: f.name, Labels: labels,
		}}}}
	case hasLabels(f.namespace, labels):
		return nil
	}
	after := f.namespace.DeepCopy()
	addLabels(after, labels)
	return []step{{Verb: reconcile.Patch, Before: f.namespace, After: after}}
}

// ensureLease creates the lease, which the agent may only renew, or labels the existing one.
func ensureLease(f facts) []step {
	labels := map[string]string{names.LabelClusterName: f.name}
	if f.lease == nil {
		holder, now := lease.ClusterLease, metav1.NewMicroTime(f.now)
		return []step{{Verb: reconcile.Create, After: &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: lease.ClusterLease, Namespace: f.name, Labels: labels},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now},
		}}}
	}
	if hasLabels(f.lease, labels) {
		return nil
	}
	after := f.lease.DeepCopy()
	addLabels(after, labels)
	return []step{{Verb: reconcile.Patch, Before: f.lease, After: after}}
}

// shrinkGrants reduces the access of a denied cluster to reading its own ManagedCluster.
func shrinkGrants(f facts) []step {
	want := renderGrants(f.name, false)
	steps := ensureRole(f.have.role, want.role)
	steps = append(steps, ensureClusterBinding(f.have.binding, want.binding)...)
	return append(steps, removeGrants(f, false, worksGone(f))...)
}
