package approval

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/csr/sign"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reasons besides those of the verdicts of package csr/approve.
const (
	reasonClusterNotFound    = "ClusterNotFound"
	reasonClusterNotAccepted = "ClusterNotAccepted"
	reasonAddonNotFound      = "AddonNotFound"
	reasonAddonInvalid       = "AddonInvalid"
	reasonRefusedByAddon     = "RefusedByAddon"
	reasonNotSigned          = "NotSigned"
	reasonNotVouched         = "IdentityNotConfirmed"
)

// vouchTimeout is how long a program waits for the hub manager before it says so: that takes less than a second.
const vouchTimeout = 30 * time.Second

// decide returns the plan for the facts.
func decide(f facts) plan {
	switch {
	case f.stage == stageFinished:
		return plan{}
	case isOver(f):
		return plan{step: stepExpire}
	case f.unknown != nil:
		return decideUnknown(f)
	case f.addon == nil && f.stage == stageOpen:
		return decideCluster(f)
	case f.addon == nil:
		return plan{}
	case !f.addon.ours:
		return decideVouching(f)
	}
	if p := missing(f); p != nil {
		return plan{note: p}
	}
	if f.stage == stageUnsigned {
		return decideSigning(f)
	}
	if f.addon.objection != nil {
		return decideObjection(f)
	}
	v := approve.JudgeAddon(f.csr, f.addon.registrations)
	if n := tooLong(f); n != nil && v.Decision == approve.DecisionApprove {
		return plan{note: n}
	}
	if v.Decision == approve.DecisionApprove && f.identity == IdentityAwaited && forHub(f.csr) {
		return decideVouched(f, v)
	}
	return decideVerdict(v)
}

// decideVouching plans what the hub manager says about the identity in a request that the program of an author
// approves. It says so once: neither the request nor the name of its requester ever changes.
func decideVouching(f facts) plan {
	_, _, found := approve.Vouched(f.csr)
	if f.identity != IdentityConfirmed || f.stage != stageOpen || !forHub(f.csr) || found ||
		approve.TooLarge(f.csr) || missing(f) != nil {
		return plan{}
	}
	if v := approve.JudgeIdentity(f.csr); v.Decision != approve.DecisionIgnore {
		return plan{step: stepVouch, verdict: v}
	}
	return plan{}
}

// decideVouched approves a good request only once the hub manager vouches for the identity in it.
func decideVouched(f facts, v approve.Verdict) plan {
	own, message, found := approve.Vouched(f.csr)
	patience := f.csr.CreationTimestamp.Add(vouchTimeout)
	switch {
	case own:
		return decideVerdict(v)
	case found:
		return plan{note: &note{true, reasonNotVouched, "Not approved: the hub manager does not confirm the identity in " +
			"the request. " + message}}
	case f.now.Before(patience):
		return plan{outcome: reconcile.Waiting(patience)}
	}
	return plan{note: &note{true, reasonNotVouched, "Not approved: the hub manager has not confirmed the identity in " +
		"the request yet, with condition " + string(approve.ConditionIdentityOwn) + ". See that it runs, in this version; " +
		"on a hub of Open Cluster Management, run the program of the add-on with --trust-as-ocm."}}
}

// tooLong returns why the certificate of a request would be valid for longer than the hub allows; nil when it would
// not. It is about the signer of the API server, which takes the lifetime from the request: what the hub manager signs
// itself, it limits itself.
func tooLong(f facts) *note {
	asked := "not set, and the default of the signer may be longer"
	if seconds := f.csr.Spec.ExpirationSeconds; seconds != nil {
		if time.Duration(*seconds)*time.Second <= f.maxLifetime {
			return nil
		}
		asked = fmt.Sprint(*seconds)
	}
	if f.maxLifetime == 0 || f.csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	most := int64(f.maxLifetime / time.Second)
	return &note{true, approve.ReasonLifetimeTooLong, fmt.Sprintf("Not approved: spec.expirationSeconds is %s, and this "+
		"hub approves certificates of add-ons for at most %d seconds (--max-addon-certificate-lifetime). Let the agent of "+
		"the cluster ask for that or less (--client-cert-expiration-seconds)", asked, most)}
}

// decideObjection handles a good request that the author of the add-on does not let the hub approve. It is judged again
// later, because what the author looks at is not watched.
func decideObjection(f facts) plan {
	if !addon.IsInvalid(f.addon.objection) && !addon.IsNotReady(f.addon.objection) {
		return plan{outcome: reconcile.FromError(f.addon.objection)}
	}
	return plan{
		note: &note{addon.IsInvalid(f.addon.objection), reasonRefusedByAddon,
			"Not approved: the program of the add-on does not agree. " + f.addon.objection.Error()},
		outcome: reconcile.Waiting(nextRetry(f.csr.CreationTimestamp.Time, f.now)),
	}
}

// isOver reports whether an open request has expired.
func isOver(f facts) bool {
	at := expiry(f)
	return !at.IsZero() && !f.now.Before(at)
}

// decideUnknown handles facts that could not be read: errors that a person must correct are reported, others are
// retried.
func decideUnknown(f facts) plan {
	var invalid *addon.InvalidError
	switch {
	case errors.As(f.unknown, &invalid):
		return plan{
			note: &note{true, reasonAddonInvalid, "The request cannot be judged, because the definition of the add-on does " +
				"not say what it registers with: " + invalid.Message},
			outcome: reconcile.Waiting(nextRetry(f.csr.CreationTimestamp.Time, f.now)),
		}
	case addon.IsNotReady(f.unknown):
		return plan{outcome: reconcile.Waiting(nextRetry(f.csr.CreationTimestamp.Time, f.now))}
	}
	return plan{outcome: reconcile.FromError(f.unknown)}
}

// decideCluster judges an open request of a cluster. Nobody renews the credential of one that the hub does not accept.
// The cache may miss that it did not for a while, so the request is judged again later.
func decideCluster(f facts) plan {
	v := approve.JudgeCluster(f.csr, f.trust, approve.HasJoined(f.cluster))
	if v.Decision != approve.DecisionReview || isAccepted(f.cluster) {
		return decideVerdict(v)
	}
	p := decideVerdict(v.Reviewed(false))
	if f.cluster == nil {
		p.note = noCluster(f, "approved")
	}
	p.outcome = reconcile.Waiting(nextRetry(f.csr.CreationTimestamp.Time, f.now))
	return p
}

// decideVerdict turns a verdict on an open request into a plan.
func decideVerdict(v approve.Verdict) plan {
	switch v.Decision {
	case approve.DecisionApprove:
		return plan{step: stepApprove, verdict: v}
	case approve.DecisionReview:
		return plan{step: stepReview, verdict: v}
	case approve.DecisionRefuse:
		return plan{note: noteOf(v)}
	case approve.DecisionIgnore:
	}
	return plan{}
}

// decideSigning judges the content again: an approval vouches for the requester, not for the content.
func decideSigning(f facts) plan {
	if !f.addon.signs {
		return plan{}
	}
	v := approve.JudgeAddonContent(f.csr, f.addon.registrations)
	if v.Decision != approve.DecisionApprove {
		return plan{note: &note{true, reasonNotSigned,
			"The request is approved, but its content is not what the add-on registers with. " + v.Message}}
	}
	ca := f.addon.ca.Secret
	ca.Namespace = cmp.Or(ca.Namespace, f.home)
	return plan{step: stepSign, verdict: v, ca: ca, use: sign.Use{
		Signer: v.Expected.Signer, Addon: f.addon.addon.Name, Home: f.home, Rivals: f.addon.ca.SharedWith,
		Unmarked: f.unmarkedCAs,
	}}
}

// missing reports the first object that a request of an add-on depends on and that does not exist; nil when all exist.
func missing(f facts) *note {
	cluster, name, _ := csrs.Subject(f.csr)
	done := "approved"
	if f.stage == stageUnsigned {
		done = "signed"
	}
	switch {
	case f.addon.cluster == nil:
		return noCluster(f, done)
	case !isAccepted(f.addon.cluster):
		return &note{true, reasonClusterNotAccepted, fmt.Sprintf(
			"Not %s: the hub does not accept cluster %q. Set spec.hubAcceptsClient of the ManagedCluster to true; the "+
				"request is then judged again.", done, cluster)}
	case f.addon.addon == nil:
		return &note{true, reasonAddonNotFound, fmt.Sprintf(
			"Not %s: there is no ManagedClusterAddOn %q in namespace %q, which label %s names. The request is judged again "+
				"when the add-on is enabled on the cluster.", done, name, cluster, names.LabelAddonName)}
	}
	return nil
}

// registersSame reports whether two copies of an add-on register with the hub for the same: in what people ask for, and
// in the configurations that were decided for it.
func registersSame(a, b *addonv1beta1.ManagedClusterAddOn) bool {
	return hubprocess.SameWishes(a, b) &&
		addonconfig.SameDesired(a.Status.ConfigReferences, b.Status.ConfigReferences)
}

// noCluster says that the cluster that a request names does not exist.
func noCluster(f facts, done string) *note {
	cluster, _, _ := csrs.Subject(f.csr)
	return &note{true, reasonClusterNotFound, fmt.Sprintf(
		"Not %s: there is no ManagedCluster %q, which label %s names.", done, cluster, names.LabelClusterName)}
}

// noteOf turns a verdict into a note. Waiting for approval is the ordinary course of a first join, so it is not a
// warning.
func noteOf(v approve.Verdict) *note {
	return &note{warning: v.Reason != approve.ReasonAwaitingApproval, reason: v.Reason, message: v.Message}
}

// commentOf turns a note into a condition that the requesting agent reads.
func commentOf(f facts, n *note) csrs.Comment {
	kind := csrs.ConditionApprovedByHub
	if f.stage == stageUnsigned {
		kind = csrs.ConditionSignedByHub
	}
	return csrs.Comment{Kind: kind, Reason: n.reason, Message: n.message}
}

// concernsRequester reports whether the requester may be the agent that the request is about; only that agent reads the
// comment. Admission policies refuse comments of the hub manager on any other request.
func concernsRequester(csr *certificatesv1.CertificateSigningRequest) bool {
	cluster, _, addonLabel := csrs.Subject(csr)
	if id, ok := csrs.ParseClusterUser(csr.Spec.Username); ok {
		return id.Cluster == cluster
	}
	_, addonAgent := csrs.ParseAddonUser(csr.Spec.Username)
	return !addonLabel && !addonAgent
}

// expiry returns when an open request with a comment is deleted; zero when it is not ours to delete.
func expiry(f facts) time.Time {
	if f.stage != stageOpen || f.csr == nil {
		return time.Time{}
	}
	_, commented := csrs.CommentOn(f.csr, csrs.ConditionApprovedByHub)
	if _, _, judged := approve.Vouched(f.csr); !commented && !judged {
		return time.Time{}
	}
	return f.csr.CreationTimestamp.Add(openLife)
}

// openLife is how long Kubernetes keeps a request that is neither approved nor denied. Kubernetes never removes a
// request with a condition, so we remove those that we commented on.
const openLife = 24 * time.Hour
