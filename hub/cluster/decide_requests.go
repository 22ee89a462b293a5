package cluster

import (
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// needsApprovedRequest reports whether a certificate request may decide that a cluster is accepted: never of one that was
// accepted before, so that the denial by a person stands, and never of one whose annotation says that this happened
// already.
func needsApprovedRequest(f facts, p phase) bool {
	_, once := f.cluster.Annotations[names.AnnotationAutoAcceptedOn]
	return p == phaseNew && !once && !f.trust.Empty() && names.CheckCluster(f.name) == nil
}

// approvedRequest returns the certificate request on whose word a new cluster is accepted, nil when there is none: one for
// exactly this cluster, whose content is what an agent of it would ask for, by a user whom the hub trusts with that,
// and that nobody denied. Who merely created the ManagedCluster proves nothing.
func approvedRequest(f facts) *certificatesv1.CertificateSigningRequest {
	for _, request := range f.requests {
		if cluster, _, addon := csrs.Subject(request); cluster != f.name || addon || rejected(request) {
			continue
		}
		if !f.trust.Names(request) {
			continue
		}
		if csrs.JudgeCluster(request, f.trust, csrs.HasJoined(f.cluster)).Decision == csrs.DecisionApprove {
			return request
		}
	}
	return nil
}

// autoAccept accepts a cluster and says so by both annotations.
func autoAccept(cluster *clusterv1.ManagedCluster, now time.Time) {
	cluster.Spec.HubAcceptsClient = true
	annotate(cluster, names.AnnotationAutoAcceptedOn, now)
	annotate(cluster, names.AnnotationAcceptedOn, now)
}

// ownRequests returns the certificate requests that go with the cluster: what its own agents asked for, what says
// exactly what an agent of it would ask for, and whatever else claims to be its and is not finished. A label proves
// nothing, so what an agent of another cluster asked for stays, and so does what was finished for somebody else.
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
		if !finished(request) || csrs.JudgeCluster(request, csrs.Trust{}, false).Expected.User != "" {
			own = append(own, request)
		}
	}
	return own
}

// finished reports whether nothing more will become of a request.
func finished(request *certificatesv1.CertificateSigningRequest) bool {
	return len(request.Status.Certificate) > 0 || rejected(request)
}

// rejected reports whether a request was denied or failed.
func rejected(request *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(request.Status.Conditions,
		func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Status != corev1.ConditionFalse &&
				(c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed)
		})
}
