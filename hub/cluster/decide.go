package cluster

import (
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/lease"
)

// phase is where a cluster stands.
type phase int

const (
	// phaseGone means that the ManagedCluster does not exist.
	phaseGone phase = iota
	// phaseDeleting means that the ManagedCluster is on its way out.
	phaseDeleting
	// phaseRefused means that no cluster of this name can be accepted.
	phaseRefused
	// phaseAccepted means that an administrator accepts the cluster.
	phaseAccepted
	// phaseDenied means that the cluster was accepted once and is not any more.
	phaseDenied
	// phaseNew means that the cluster was never accepted, or cannot have been because of its name.
	phaseNew
)

// facts is all that a decision about one cluster needs.
type facts struct {
	name      string
	now       time.Time
	cluster   *clusterv1.ManagedCluster
	namespace *metav1.PartialObjectMetadata
	have      grants
	shared    map[string]*rbacv1.ClusterRole
	lease     *coordinationv1.Lease
	addons    []*addonv1beta1.ManagedClusterAddOn
	// works are the ManifestWorks of the namespace, metadata only; read only where needsWorks says so.
	works []*workv1.ManifestWork
	// requests are the certificate requests that carry the label of the cluster; read only where the decision looks at
	// them.
	requests []*certificatesv1.CertificateSigningRequest
	// trust says which certificate requests let a new cluster in.
	trust csrs.Trust
	// live is what the server holds though the caches do not show it; nil when it was not asked.
	live *live
}

// live is the answer of the server to the question whether a namespace is really empty and, of a cluster that the
// cache does not show, whether it really does not exist.
type live struct {
	cluster, addons, works bool
	err                    error
}

// plan is what is to be done about one cluster.
type plan struct {
	phase phase
	// cluster is the ManagedCluster with its finalizers, labels, taints and acceptance as they shall be; nil to leave it
	// alone. It is written before the stages, and after them when the cluster is deleted.
	cluster *clusterv1.ManagedCluster
	// approvedRequest is the certificate request on whose word the cluster is accepted; nil when it is not.
	approvedRequest *certificatesv1.CertificateSigningRequest
	// stages are run one after the other; a stage is only begun when all steps before it succeeded.
	stages [][]step
	// unknownAddOns are add-ons to be shown as Unknown.
	unknownAddOns []addOnStatus
	// refused says why nothing can be done until a person helps.
	refused error
	// blocked says what has to happen first; an event will tell.
	blocked error
	// remaining says what a deletion still waits for; empty when nothing is left.
	remaining string
	// silent is true when the agent stopped renewing its lease.
	silent bool
	wake   time.Time
}

// step is one planned write.
type step = reconcile.Step[client.Object]

// addOnStatus is an add-on before and after its Available condition became Unknown.
type addOnStatus struct {
	before, after *addonv1beta1.ManagedClusterAddOn
}

// phaseOf sorts a cluster; the rules are tried from top to bottom.
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
	case acceptedBefore(cluster) && names.CheckCluster(name) == nil:
		return phaseDenied
	}
	return phaseNew
}

// needsWorks reports whether the decision depends on the ManifestWorks of the namespace.
func needsWorks(p phase, f facts) bool {
	return p == phaseDeleting || vanished(f) || (p != phaseAccepted && f.have.work != nil)
}

// needsLiveCheck reports whether access is about to be taken away because the caches show nothing that still needs it.
func needsLiveCheck(p phase, f facts) bool {
	switch {
	case vanished(f):
		return true
	case len(f.works) > 0 || (p == phaseDeleting && len(f.addons) > 0):
		return false
	}
	return f.have.work != nil || (p == phaseDeleting && !emptyConfirmed(f.cluster))
}

// decide returns the plan for one cluster.
func decide(f facts) plan {
	p := plan{phase: phaseOf(f.name, f.cluster)}
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
	case phaseDenied:
		p.cluster, p.stages = wantedCluster(f), [][]step{shrinkGrants(f)}
	}
	decideSilence(f, &p)
	p.unknownAddOns = decideUnknownAddOns(f, &p)
	return p
}

// decideNew takes away what is left of an earlier cluster of the same name, and lets the new one in if a certificate
// request vouches for it.
func decideNew(f facts, p *plan) {
	p.stages = [][]step{removeGrants(f, true, worksGone(f))}
	p.cluster = wantedCluster(f)
	if !needsApprovedRequest(f, p.phase) {
		return
	}
	if p.approvedRequest = approvedRequest(f); p.approvedRequest == nil {
		return
	}
	if p.cluster == nil {
		p.cluster = f.cluster.DeepCopy()
	}
	autoAccept(p.cluster, f.now)
}

// decideAccepted plans all that an accepted cluster gets.
func decideAccepted(f facts, p *plan) {
	p.cluster = wantedCluster(f)
	if ns := f.namespace; ns != nil && !ns.DeletionTimestamp.IsZero() {
		p.blocked = fmt.Errorf("namespace %s is being deleted, so the cluster cannot be accepted yet; its agent gets access "+
			"when the namespace is gone", f.name)
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
	p.stages = [][]step{ensureNamespace(f), append(access, ensureLease(f)...)}
}

// wantedCluster returns the cluster with our finalizer, the annotation that remembers its acceptance, a cluster set,
// the labels that mirror its add-ons, the times of its taints and the taint that tells its health; nil when it has
// them. A cluster gets the finalizer before it is accepted, because it may have add-ons, works and certificate requests
// by then; one whose name is unusable gets neither finalizer nor annotation, because nothing is ever done for it.
func wantedCluster(f facts) *clusterv1.ManagedCluster {
	want := f.cluster.DeepCopy()
	changed := false
	if names.CheckCluster(f.name) == nil {
		changed = addFinalizer(want, names.FinalizerCluster)
		changed = annotateAcceptance(want, f.now) || changed
	}
	changed = joinDefaultSet(want) || changed
	changed = mirrorAddons(want, f.addons) || changed
	changed = setTaintTimes(want, f.now) || changed
	changed = taint(want, f.now) || changed
	if !changed {
		return nil
	}
	return want
}

// ensureNamespace creates the namespace of the cluster, or marks the one that is there.
func ensureNamespace(f facts) []step {
	if f.namespace == nil {
		return []step{{Verb: reconcile.Create, After: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: f.name, Labels: map[string]string{names.LabelClusterName: f.name},
		}}}}
	}
	after := f.namespace.DeepCopy()
	if !addLabels(after, map[string]string{names.LabelClusterName: f.name}) {
		return nil
	}
	return []step{{Verb: reconcile.Patch, Before: f.namespace, After: after}}
}

// ensureLease creates the heartbeat that the agent may only renew, or marks the one that is there.
func ensureLease(f facts) []step {
	labels := map[string]string{names.LabelClusterName: f.name}
	if f.lease == nil {
		holder, now := lease.ClusterLease, metav1.NewMicroTime(f.now)
		return []step{{Verb: reconcile.Create, After: &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: lease.ClusterLease, Namespace: f.name, Labels: labels},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now},
		}}}
	}
	after := f.lease.DeepCopy()
	if !addLabels(after, labels) {
		return nil
	}
	return []step{{Verb: reconcile.Patch, Before: f.lease, After: after}}
}

// shrinkGrants leaves a denied cluster with reading itself.
func shrinkGrants(f facts) []step {
	want := renderGrants(f.name, false)
	steps := ensureRole(f.have.role, want.role)
	steps = append(steps, ensureClusterBinding(f.have.binding, want.binding)...)
	return append(steps, removeGrants(f, false, worksGone(f))...)
}

// worksGone reports whether the server itself said that no ManifestWork is left.
func worksGone(f facts) bool {
	return len(f.works) == 0 && f.live != nil && f.live.err == nil && !f.live.works
}

// removeGrants takes the access in the namespace away, and with all also that outside of it. The access to
// ManifestWorks stays usable, though deleted, until free, so that the agent can clean up.
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
