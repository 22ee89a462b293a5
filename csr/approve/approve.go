package approve

import (
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/message"
)

// Decision is the outcome of a verdict. The hub never denies: a person may still approve a request that it refuses.
type Decision string

const (
	// DecisionIgnore means that the request is none of ours; nothing is said about it.
	DecisionIgnore Decision = "Ignore"
	// DecisionRefuse means that the request is ours to judge and not approved; its author gets the reason.
	DecisionRefuse Decision = "Refuse"
	// DecisionReview means that the request is approved if the access review of RenewalReview allows it.
	DecisionReview Decision = "Review"
	// DecisionApprove means that the request is approved.
	DecisionApprove Decision = "Approve"
)

// Reason and messages of an approval (docs/reference/registration.md, "Approval for clusters" and "Approval for
// add-ons").
const (
	// ReasonApproved is the reason of every approval.
	ReasonApproved = "AutoApprovedByHubCSRApprovingController"

	messageClusterApproved = "Auto approving Managed cluster agent certificate after SubjectAccessReview."
	messageAddonApproved   = "Auto approving addon agent certificate."
)

// Reasons of a verdict about the content of a request.
const (
	// ReasonRequestMalformed means that the request cannot be decoded.
	ReasonRequestMalformed = "RequestMalformed"
	// ReasonRequestTooLarge means that the request is larger than any that an agent makes.
	ReasonRequestTooLarge = "RequestTooLarge"
	// ReasonKeyNotAccepted means that the key is of another kind or size, or did not sign the request.
	ReasonKeyNotAccepted = "KeyNotAccepted"
	// ReasonSubjectNotExpected means that the subject differs from the expected one.
	ReasonSubjectNotExpected = "SubjectNotExpected"
	// ReasonNamesNotExpected means that the alternative names or the extensions differ from the expected ones.
	ReasonNamesNotExpected = "AlternativeNamesNotExpected"
	// ReasonUsagesNotExpected means that the usages differ from those of the protocol.
	ReasonUsagesNotExpected = "UsagesNotExpected"
	// ReasonLifetimeTooLong means that the request asks for more than a year.
	ReasonLifetimeTooLong = "LifetimeTooLong"
	// ReasonSignerNotExpected means that the add-on does not register with the signer.
	ReasonSignerNotExpected = "SignerNotExpected"
	// ReasonClusterNameInvalid means that no cluster can have the name.
	ReasonClusterNameInvalid = "ClusterNameInvalid"
	// ReasonClusterNameReserved means that the group of the cluster would be the group of all clusters.
	ReasonClusterNameReserved = "ClusterNameReserved"

	reasonNotOurs        = "NotOurs"
	reasonIdentityNotOwn = "IdentityNotOwn"
)

// Reasons of a verdict about the requester of a request whose content is as expected.
const (
	// ReasonRequesterNotTrusted means that another agent than the one in question asks.
	ReasonRequesterNotTrusted = "RequesterNotTrusted"
	// ReasonAwaitingApproval means that a person or an access review decides.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonRenewalNotAllowed means that the access review does not allow the renewal.
	ReasonRenewalNotAllowed = "RenewalNotAllowed"
	// ReasonBoundToOther means that the bootstrap credential is bound to another cluster.
	ReasonBoundToOther = "RequesterBoundToOther"
	// ReasonClusterJoined means that the cluster has joined before.
	ReasonClusterJoined = "ClusterHasJoined"
)

const (
	// reservedCluster is the one cluster name whose group would be the group of all clusters.
	reservedCluster = "managed-clusters"
	// remedyRefused is the end of the message about a request whose content or requester is wrong.
	remedyRefused = " Correct what asks or, for an add-on, the registration in its definition: the next request is " +
		"judged by itself."
	// groupAuthenticated is the organization that old agents of add-ons send besides their own groups.
	groupAuthenticated = "system:authenticated"
)

// Verdict is the result of the judgement on a request.
type Verdict struct {
	// Decision is the outcome.
	Decision Decision
	// Reason is the CamelCase reason.
	Reason string
	// Message explains the reason in sentences: the error, where it is, and the remedy.
	Message string
	// Expected is the request as the hub would have written it, set when the content of the request equals it. A
	// certificate must have exactly this content.
	Expected csr.Request
}

// JudgeCluster judges a request for a cluster's own credential (docs/reference/registration.md, "Approval for
// clusters"): its content must be exactly that of csr.ForCluster, and its requester either the very agent that it
// names, which then renews, or one that trust names. joined is set when the cluster has joined before, see HasJoined.
func JudgeCluster(request *certificatesv1.CertificateSigningRequest, trust Trust, joined bool) Verdict {
	cluster, _, addonLabel := csr.Subject(request)
	if cluster == "" || addonLabel {
		return ignore("the request does not carry the labels of a cluster's own credential")
	}
	if request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return ignore(fmt.Sprintf("signer %s is not that of a cluster's own credential",
			message.Quote(request.Spec.SignerName)))
	}
	what := fmt.Sprintf("credential of cluster %s", message.Quote(cluster))
	ask, unreadable := decode(request)
	if len(unreadable) > 0 {
		return refuse(what, unreadable)
	}
	expected := expectCluster(cluster, ask)
	problems := slices.Concat(checkCluster(cluster), checkAlways(request, ask), compare(ask, expected))
	if len(problems) > 0 {
		return refuse(what, problems)
	}
	return judgeClusterRequester(request, applicant{cluster, joined}, trust, expected)
}

// JudgeAddon judges a request for a credential of an add-on. Its content must be exactly that of csr.ForAddon for one
// of the registrations, which must be those that the hub itself computed for this add-on on this cluster (never what
// is in a status that the agent may write), and its requester an agent of that very cluster.
func JudgeAddon(
	request *certificatesv1.CertificateSigningRequest, registrations []addonv1beta1.RegistrationConfig,
) Verdict {
	v := JudgeAddonContent(request, registrations)
	if v.Decision != DecisionApprove {
		return v
	}
	return judgeAddonRequester(request, v)
}

// judgeAddonRequester refuses a request of an add-on that an agent of its cluster did not make; v is the verdict on its
// content.
func judgeAddonRequester(request *certificatesv1.CertificateSigningRequest, v Verdict) Verdict {
	cluster, addon, _ := csr.Subject(request)
	requester := request.Spec.Username
	if id, ok := csr.ParseClusterUser(requester); !ok || id.Cluster != cluster {
		return refuse(ofAddon(cluster, addon), []problem{{
			ReasonRequesterNotTrusted,
			fmt.Sprintf("the requester is %s, but only the agent of that cluster (user %s<agent>) may ask for it",
				message.Quote(requester), csr.ClusterUser(cluster, "")),
		}})
	}
	return v
}

// JudgeAddonContent is JudgeAddon without the check of the requester: a signer checks the content of every approved
// request before it signs, no matter who approved it.
func JudgeAddonContent(
	request *certificatesv1.CertificateSigningRequest, registrations []addonv1beta1.RegistrationConfig,
) Verdict {
	cluster, addon, addonLabel := csr.Subject(request)
	if cluster == "" || !addonLabel {
		return ignore("the request does not carry the labels of an add-on's credential")
	}
	what := ofAddon(cluster, addon)
	ask, unreadable := decode(request)
	if len(unreadable) > 0 {
		return refuse(what, unreadable)
	}
	problems := slices.Concat(checkCluster(cluster), checkAlways(request, ask))
	candidates, missing := expectAddon(cluster, addon, request.Spec.SignerName, registrations)
	if len(candidates) == 0 {
		return refuse(what, append(problems, missing))
	}
	var nearest []problem
	for i, expected := range candidates {
		differences := compare(ask, expected)
		if len(problems) == 0 && len(differences) == 0 {
			return Verdict{DecisionApprove, ReasonApproved, messageAddonApproved, expected}
		}
		if i == 0 || len(differences) < len(nearest) {
			nearest = differences
		}
	}
	return refuse(what, append(problems, nearest...))
}

// RenewalReview returns the access review that a verdict of DecisionReview depends on: whether the requester, with all
// that the API server knew of it when it asked, may renew credentials of clusters.
func RenewalReview(request *certificatesv1.CertificateSigningRequest) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User:   request.Spec.Username,
		UID:    request.Spec.UID,
		Groups: slices.Clone(request.Spec.Groups),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group:       "register.open-cluster-management.io",
			Resource:    "managedclusters",
			Subresource: "clientcertificates",
			Verb:        "renew",
		},
	}
	if len(request.Spec.Extra) > 0 {
		spec.Extra = make(map[string]authorizationv1.ExtraValue, len(request.Spec.Extra))
		for key, values := range request.Spec.Extra {
			spec.Extra[key] = authorizationv1.ExtraValue(slices.Clone(values))
		}
	}
	return spec
}

// Reviewed returns the final verdict for one of DecisionReview, given the result of the access review.
func (v Verdict) Reviewed(allowed bool) Verdict {
	if v.Decision != DecisionReview {
		return v
	}
	if allowed {
		return Verdict{DecisionApprove, ReasonApproved, messageClusterApproved, v.Expected}
	}
	return Verdict{
		Decision: DecisionRefuse, Reason: ReasonRenewalNotAllowed, Expected: v.Expected,
		Message: fmt.Sprintf("Not approved: user %s has no right to renew the credential of its cluster. Set "+
			"spec.hubAcceptsClient of the ManagedCluster to true to grant it; the request is then approved by itself.",
			message.Quote(v.Expected.User)),
	}
}

// isAgent reports whether a user name is that of an agent of a cluster or of an add-on.
func isAgent(user string) bool {
	_, cluster := csr.ParseClusterUser(user)
	_, addon := csr.ParseAddonUser(user)
	return cluster || addon
}

// ofAddon names the credential of an add-on in a message.
func ofAddon(cluster, addon string) string {
	return fmt.Sprintf("credential of add-on %s on cluster %s", message.Quote(addon), message.Quote(cluster))
}

func ignore(message string) Verdict {
	return Verdict{Decision: DecisionIgnore, Reason: reasonNotOurs, Message: message}
}

// refuse returns a verdict with all problems; its reason is that of the first.
func refuse(what string, problems []problem) Verdict {
	messages := make([]string, 0, len(problems))
	for _, p := range problems {
		messages = append(messages, p.message)
	}
	text := fmt.Sprintf("Not approved: this is no valid request for the %s: %s.", what, strings.Join(messages, "; "))
	return Verdict{
		Decision: DecisionRefuse, Reason: problems[0].reason,
		Message: message.Cut(text, maxMessage-len(remedyRefused)) + remedyRefused,
	}
}
