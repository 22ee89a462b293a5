package cluster

import (
	"fmt"

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

// needsLiveCheck reports whether access is about to be removed because the caches show nothing that needs it, or works
// because they show no add-on.
func needsLiveCheck(p phase, f facts) bool {
	switch {
	case vanished(f):
		return true
	case p == phaseDeleting && len(f.addons) > 0:
		return false
	case len(f.works) > 0:
		return p == phaseDeleting && len(removeFirst(objects(f.works))) > 0
	}
	return f.have.work != nil || p == phaseDeleting
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
	again := deniedBefore(f) && names.CheckCluster(f.name) == nil
	if needsApprovedRequest(f, p.phase) {
		p.approvedRequest = approvedRequest(f)
	}
	if !again && p.approvedRequest == nil {
		decideUnaccepted(f, p)
		return
	}
	if p.cluster == nil {
		p.cluster = f.cluster.DeepCopy()
	}
	if again {
		p.deniedAgain = true
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
	f.label(want.role, want.binding, want.registration, want.work)
	for _, role := range sharedRoles() {
		f.label(role)
		access = append(access, ensureRole(f.shared[role.Name], role)...)
	}
	access = append(access, ensureRole(f.have.role, want.role)...)
	access = append(access, ensureClusterBinding(f.have.binding, want.binding)...)
	access = append(access, ensureBinding(f.have.registration, want.registration)...)
	access = append(access, ensureBinding(f.have.work, want.work)...)
	p.stages = [][]step{append(ensureNamespace(f), forgetDenial(f)...), append(access, ensureLease(f)...)}
}

// label puts the further labels on objects, but for those that ours have.
func (f facts) label(objects ...metav1.Object) {
	for _, o := range objects {
		o.SetLabels(reconcile.WithEntries(f.labels, o.GetLabels()))
	}
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
	labels := reconcile.WithEntries(f.labels, map[string]string{names.LabelClusterName: f.name})
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
