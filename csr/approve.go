package csr

import (
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
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
	ReasonApproved         = "AutoApprovedByHubCSRApprovingController"
	MessageClusterApproved = "Auto approving Managed cluster agent certificate after SubjectAccessReview."
	MessageAddonApproved   = "Auto approving addon agent certificate."
)

// Reasons of a verdict other than an approval.
const (
	ReasonNotOurs             = "NotOurs"
	ReasonRequestMalformed    = "RequestMalformed"
	ReasonKeyNotAccepted      = "KeyNotAccepted"
	ReasonSubjectNotExpected  = "SubjectNotExpected"
	ReasonNamesNotExpected    = "AlternativeNamesNotExpected"
	ReasonUsagesNotExpected   = "UsagesNotExpected"
	ReasonLifetimeTooLong     = "LifetimeTooLong"
	ReasonSignerNotExpected   = "SignerNotExpected"
	ReasonIdentityNotOwn      = "IdentityNotOwn"
	ReasonClusterNameInvalid  = "ClusterNameInvalid"
	ReasonClusterNameReserved = "ClusterNameReserved"
	ReasonRequesterNotTrusted = "RequesterNotTrusted"
	ReasonAwaitingApproval    = "AwaitingApproval"
	ReasonRenewalNotAllowed   = "RenewalNotAllowed"
	ReasonRequestTooLarge     = "RequestTooLarge"
	ReasonBoundToOther        = "RequesterBoundToOther"
	ReasonClusterJoined       = "ClusterHasJoined"
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
	Expected Request
}

// JudgeCluster judges a request for a cluster's own credential (docs/reference/registration.md, "Approval for
// clusters"): its content must be exactly that of ForCluster, and its requester either the very agent that it names,
// which then renews, or one that trust names. joined is set when the cluster has joined before, see HasJoined.
func JudgeCluster(csr *certificatesv1.CertificateSigningRequest, trust Trust, joined bool) Verdict {
	cluster, _, addonLabel := Subject(csr)
	if cluster == "" || addonLabel {
		return ignore("the request does not carry the labels of a cluster's own credential")
	}
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return ignore(fmt.Sprintf("signer %s is not that of a cluster's own credential", quote(csr.Spec.SignerName)))
	}
	what := fmt.Sprintf("credential of cluster %s", quote(cluster))
	if TooLarge(csr) {
		return refuse(what, []problem{tooLargeProblem()})
	}
	ask, err := decode(csr)
	if err != nil {
		return refuse(what, []problem{{ReasonRequestMalformed, err.Error()}})
	}
	expected := expectCluster(cluster, ask)
	problems := slices.Concat(checkCluster(cluster), checkAlways(csr, ask), compare(ask, expected))
	if len(problems) > 0 {
		return refuse(what, problems)
	}
	return judgeClusterRequester(csr, applicant{cluster, joined}, trust, expected)
}

// JudgeAddon judges a request for a credential of an add-on. Its content must be exactly that of ForAddon for one of
// the registrations, which must be those that the hub itself computed for this add-on on this cluster (never what
// stands in a status that the agent may write), and its requester an agent of that very cluster.
func JudgeAddon(
	csr *certificatesv1.CertificateSigningRequest, registrations []addonv1beta1.RegistrationConfig,
) Verdict {
	v := JudgeAddonContent(csr, registrations)
	if v.Decision != DecisionApprove {
		return v
	}
	return judgeAddonRequester(csr, v)
}

// judgeAddonRequester refuses a request of an add-on that an agent of its cluster did not make; v is the verdict on its
// content.
func judgeAddonRequester(csr *certificatesv1.CertificateSigningRequest, v Verdict) Verdict {
	cluster, addon, _ := Subject(csr)
	requester := csr.Spec.Username
	if id, ok := ParseClusterUser(requester); !ok || id.Cluster != cluster {
		return refuse(fmt.Sprintf("credential of add-on %s on cluster %s", quote(addon), quote(cluster)), []problem{{
			ReasonRequesterNotTrusted,
			fmt.Sprintf("the requester is %s, but only the agent of that cluster (user %s<agent>) may ask for it",
				quote(requester), ClusterUser(cluster, "")),
		}})
	}
	return v
}

// JudgeAddonContent is JudgeAddon without the check of the requester: a signer checks the content of every approved
// request before it signs, whoever approved it.
func JudgeAddonContent(
	csr *certificatesv1.CertificateSigningRequest, registrations []addonv1beta1.RegistrationConfig,
) Verdict {
	cluster, addon, addonLabel := Subject(csr)
	if cluster == "" || !addonLabel {
		return ignore("the request does not carry the labels of an add-on's credential")
	}
	what := fmt.Sprintf("credential of add-on %s on cluster %s", quote(addon), quote(cluster))
	if TooLarge(csr) {
		return refuse(what, []problem{tooLargeProblem()})
	}
	ask, err := decode(csr)
	if err != nil {
		return refuse(what, []problem{{ReasonRequestMalformed, err.Error()}})
	}
	problems := slices.Concat(checkCluster(cluster), checkAlways(csr, ask))
	candidates, missing := expectAddon(cluster, addon, csr.Spec.SignerName, registrations)
	if len(candidates) == 0 {
		return refuse(what, append(problems, missing))
	}
	var nearest []problem
	for i, expected := range candidates {
		differences := compare(ask, expected)
		if len(problems) == 0 && len(differences) == 0 {
			return Verdict{DecisionApprove, ReasonApproved, MessageAddonApproved, expected}
		}
		if i == 0 || len(differences) < len(nearest) {
			nearest = differences
		}
	}
	return refuse(what, append(problems, nearest...))
}

// RenewalReview returns the access review that a verdict of DecisionReview depends on: whether the requester, with all
// that the API server knew of it when it asked, may renew credentials of clusters.
func RenewalReview(csr *certificatesv1.CertificateSigningRequest) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User:   csr.Spec.Username,
		UID:    csr.Spec.UID,
		Groups: slices.Clone(csr.Spec.Groups),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group:       "register.open-cluster-management.io",
			Resource:    "managedclusters",
			Subresource: "clientcertificates",
			Verb:        "renew",
		},
	}
	if len(csr.Spec.Extra) > 0 {
		spec.Extra = make(map[string]authorizationv1.ExtraValue, len(csr.Spec.Extra))
		for key, values := range csr.Spec.Extra {
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
		return Verdict{DecisionApprove, ReasonApproved, MessageClusterApproved, v.Expected}
	}
	return Verdict{
		Decision: DecisionRefuse, Reason: ReasonRenewalNotAllowed, Expected: v.Expected,
		Message: fmt.Sprintf("Not approved: user %s has no right to renew the credential of its cluster. Set "+
			"spec.hubAcceptsClient of the ManagedCluster to true to grant it; the request is then approved by itself.",
			quote(v.Expected.User)),
	}
}

// Subject returns the cluster and the add-on that the labels of a request name, and whether it carries the label of an
// add-on at all. The author of a request chooses the labels freely: they only select the content to compare with.
func Subject(csr *certificatesv1.CertificateSigningRequest) (cluster, addon string, addonLabel bool) {
	addon, addonLabel = csr.Labels[names.LabelAddonName]
	return csr.Labels[names.LabelClusterName], addon, addonLabel
}

// isAgent reports whether a user name is that of an agent of a cluster or of an add-on.
func isAgent(user string) bool {
	_, cluster := ParseClusterUser(user)
	_, addon := ParseAddonUser(user)
	return cluster || addon
}

func ignore(message string) Verdict {
	return Verdict{Decision: DecisionIgnore, Reason: ReasonNotOurs, Message: message}
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
