package cluster

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// requestLooks is the pause between two looks at the certificate requests of a cluster that waits for acceptance. Their
// end is not an event of the cluster.
const requestLooks = time.Hour

// decideUnaccepted removes a cluster that was never accepted, after its time. Everybody with a bootstrap credential may
// create any number of clusters, and nobody else removes them. A cluster stays whose certificate request waits for a
// person, or was approved; so does one that shows the hand of a user with more rights: its namespace, a cluster set,
// or the annotation that keeps it.
func decideUnaccepted(f facts, p *plan) {
	if f.unacceptedLife <= 0 || !untouched(f) {
		return
	}
	waits, approved := asksOf(f)
	end := f.cluster.CreationTimestamp.Add(f.unacceptedLife)
	switch {
	case approved:
		if p.cluster == nil {
			p.cluster = f.cluster.DeepCopy()
		}
		annotate(p.cluster, names.AnnotationKeepUnaccepted, f.now)
	case f.now.Before(end):
		p.wake = reconcile.Earliest(p.wake, end)
	case waits:
		p.wake = reconcile.Earliest(p.wake, f.now.Add(requestLooks))
	case p.cluster == nil: // our own writes come first
		p.abandoned = true
		p.stages = [][]step{{{Verb: reconcile.Delete, Before: f.cluster}}}
	}
}

// untouched reports whether a cluster that was never accepted is as a bootstrap credential can create one, which may
// also say that it was accepted without a person. A cluster with an unusable name may have been accepted before.
func untouched(f facts) bool {
	_, kept := f.cluster.Annotations[names.AnnotationKeepUnaccepted]
	if kept || names.AcceptedBefore(f.cluster, f.cluster.Status.Conditions) {
		return false
	}
	set := f.cluster.Labels[clusterv1beta2.ClusterSetLabel]
	return (set == "" || set == defaultSet) && f.namespace == nil && len(f.addons) == 0 &&
		meta.FindStatusCondition(f.cluster.Status.Conditions, clusterv1.ManagedClusterConditionJoined) == nil
}

// asksOf reports whether a certificate request for the credential of the cluster waits for a decision, and whether one
// was approved.
func asksOf(f facts) (waits, approved bool) {
	for _, request := range f.requests {
		if cluster, _, addon := csrs.Subject(request); cluster != f.name || addon || rejected(request) {
			continue
		}
		if isApproved(request) || len(request.Status.Certificate) > 0 {
			return false, true
		}
		waits = true
	}
	return waits, false
}

// isApproved reports whether a user approved a request.
func isApproved(request *certificatesv1.CertificateSigningRequest) bool {
	return csrs.HasCondition(request, certificatesv1.CertificateApproved)
}

// annotateAcceptance annotates a cluster that is or was accepted, and reports whether that changed it.
func annotateAcceptance(cluster *clusterv1.ManagedCluster, now time.Time) bool {
	if !cluster.Spec.HubAcceptsClient && !names.AcceptedBefore(cluster, cluster.Status.Conditions) {
		return false
	}
	return annotate(cluster, names.AnnotationAcceptedOn, now)
}

// annotate sets an annotation to an instant unless it exists, and reports whether it did.
func annotate(o metav1.Object, key string, at time.Time) bool {
	all := o.GetAnnotations()
	if _, ok := all[key]; ok {
		return false
	}
	if all == nil {
		all = map[string]string{}
	}
	all[key] = at.UTC().Format(time.RFC3339)
	o.SetAnnotations(all)
	return true
}

// A denial is recorded twice: by the annotation of the ManagedCluster that it was accepted before, and on the namespace
// of the cluster, which stays when the ManagedCluster is deleted.

// denied reports whether a cluster was accepted before and is no longer.
func denied(cluster *clusterv1.ManagedCluster) bool {
	return !cluster.Spec.HubAcceptsClient && names.AcceptedBefore(cluster, cluster.Status.Conditions)
}

// deniedBefore reports whether a cluster of this name was denied when it was deleted.
func deniedBefore(f facts) bool {
	return f.namespace != nil && f.namespace.Annotations[names.AnnotationDeniedOn] != ""
}

// recordDenial annotates the namespace of a denied cluster; none where nothing changes. A namespace without the label
// of the cluster belongs to others.
func recordDenial(f facts) []step {
	if f.namespace == nil || deniedBefore(f) || !denied(f.cluster) ||
		!hasLabels(f.namespace, map[string]string{names.LabelClusterName: f.name}) {
		return nil
	}
	after := f.namespace.DeepCopy()
	annotate(after, names.AnnotationDeniedOn, f.now)
	return []step{{Verb: reconcile.Patch, Before: f.namespace, After: after}}
}

// forgetDenial removes that annotation from the namespace of an accepted cluster.
func forgetDenial(f facts) []step {
	if !deniedBefore(f) {
		return nil
	}
	after := f.namespace.DeepCopy()
	delete(after.Annotations, names.AnnotationDeniedOn)
	return []step{{Verb: reconcile.Patch, Before: f.namespace, After: after}}
}
