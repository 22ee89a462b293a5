package approve

import (
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/message"
)

// applicant is the cluster that a request names.
type applicant struct {
	name string
	// joined is set when it has joined before.
	joined bool
}

// judgeClusterRequester judges the requester of a cluster's own credential, given that the content is as expected.
func judgeClusterRequester(
	request *certificatesv1.CertificateSigningRequest, cluster applicant, trust Trust, expected csr.Request,
) Verdict {
	requester := request.Spec.Username
	bound := boundClusters(requester, request.Spec.Groups)
	boundHere := slices.Contains(bound, cluster.name)
	trusted := trust.trustsUser(requester)
	v := Verdict{Expected: expected}
	switch {
	case requester == expected.User:
		v.Decision, v.Reason = DecisionReview, ReasonAwaitingApproval
		v.Message = "The agent renews its own credential; an access review decides."
		return v
	case len(bound) > 0 && !boundHere:
		return refused(expected, ReasonBoundToOther, "Not approved: %s is bound to cluster %s and asks for the credential "+
			"of cluster %s. Use a bootstrap credential that is bound to that cluster, or to none.",
			message.Quote(requester), list(bound), message.Quote(cluster.name))
	case boundHere && (trust.Bound || trusted), trusted && (!cluster.joined || trust.Joined):
		v.Decision, v.Reason, v.Message = DecisionApprove, ReasonApproved, messageClusterApproved
		return v
	case trusted:
		return refused(expected, ReasonClusterJoined, "Not approved: cluster %s has joined before, and everybody who holds "+
			"the bootstrap credential of %s could take over its identity. If the agent of the cluster lost its credential, "+
			"run kubectl certificate approve on this request, give it a bootstrap credential that is bound to the cluster, "+
			"or start the hub manager with --auto-approve-joined-clusters.",
			message.Quote(cluster.name), message.Quote(requester))
	case isAgent(requester):
		return refused(expected, ReasonRequesterNotTrusted, "Not approved: the request for the credential of cluster %s "+
			"comes from %s, which is another agent. Only %s itself may renew it; a first credential is asked for with the "+
			"bootstrap credential. Do not approve it by hand unless you know why that agent asks.",
			message.Quote(cluster.name), message.Quote(requester), message.Quote(expected.User))
	}
	return refused(expected, ReasonAwaitingApproval, "Waiting for a person: %s asks for the first credential of cluster "+
		"%s and is not one of the users whose requests are approved by themselves. If you know the cluster, run kubectl "+
		"certificate approve on this request.", message.Quote(requester), message.Quote(cluster.name))
}

// refused is a refusal of a request whose content is as expected.
func refused(expected csr.Request, reason, format string, args ...any) Verdict {
	return Verdict{
		Decision: DecisionRefuse, Reason: reason, Expected: expected,
		Message: message.Cut(fmt.Sprintf(format, args...), maxMessage),
	}
}
