package cluster

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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
// person, or was approved; so does one that shows the hand of somebody with more rights: its namespace, a cluster set,
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

// isApproved reports whether somebody approved a request.
func isApproved(request *certificatesv1.CertificateSigningRequest) bool {
	return csrs.HasCondition(request, certificatesv1.CertificateApproved)
}
