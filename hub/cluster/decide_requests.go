package cluster

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
)

// needsApprovedRequest reports whether a certificate request may accept the cluster. It may not if the cluster was
// accepted before or denied when it was deleted, so that a denial stands, nor if it was auto-accepted once, nor into a
// namespace that is not its own.
func needsApprovedRequest(f facts, p phase) bool {
	_, once := f.cluster.Annotations[names.AnnotationAutoAcceptedOn]
	return p == phaseNew && !once && !deniedBefore(f) && !f.trust.Empty() && names.CheckCluster(f.name) == nil &&
		foreignNamespace(f) == nil
}

// approvedRequest returns the certificate request that auto-accepts a new cluster; nil when there is none. The request
// is for exactly this cluster, has the content that its agent would send, comes from a trusted user, and was not
// denied. Creating a ManagedCluster proves nothing.
func approvedRequest(f facts) *certificatesv1.CertificateSigningRequest {
	for _, request := range f.requests {
		if cluster, _, addon := csrs.Subject(request); cluster != f.name || addon || rejected(request) {
			continue
		}
		if !f.trust.Names(request) {
			continue
		}
		if approve.JudgeCluster(request, f.trust, approve.HasJoined(f.cluster)).Decision == approve.DecisionApprove {
			return request
		}
	}
	return nil
}

// autoAccept accepts a cluster and sets both annotations.
func autoAccept(cluster *clusterv1.ManagedCluster, now time.Time) {
	cluster.Spec.HubAcceptsClient = true
	annotate(cluster, names.AnnotationAutoAcceptedOn, now)
	annotate(cluster, names.AnnotationAcceptedOn, now)
}

// ownRequests returns the certificate requests that are deleted with the cluster: those of its own agents, those with
// exactly the content that its agent would send, and unfinished ones with its label. A label proves nothing, so
// requests of agents of other clusters stay, and so do finished requests of others.
func ownRequests(cluster string, all []*certificatesv1.CertificateSigningRequest) []client.Object {
	var own []client.Object
	for _, request := range all {
		if request.Labels[names.LabelClusterName] != cluster {
			continue
		}
		if requester, agent := csrs.ParseClusterUser(request.Spec.Username); agent {
			if requester.Cluster == cluster {
				own = append(own, request)
			}
			continue
		}
		if !finished(request) || approve.JudgeCluster(request, approve.Trust{}, false).Expected.User != "" {
			own = append(own, request)
		}
	}
	return own
}

// finished reports whether a request has reached its final state.
func finished(request *certificatesv1.CertificateSigningRequest) bool {
	return len(request.Status.Certificate) > 0 || rejected(request)
}

// rejected reports whether a request was denied or failed.
func rejected(request *certificatesv1.CertificateSigningRequest) bool {
	return csrs.HasCondition(request, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed)
}
