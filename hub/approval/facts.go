package approval

import (
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/csr/sign"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// stage is the progress of a request.
type stage int

const (
	// stageFinished needs no further action.
	stageFinished stage = iota
	// stageOpen is neither approved nor denied.
	stageOpen
	// stageUnsigned is approved, has no certificate, and its signer is not built into Kubernetes.
	stageUnsigned
)

// facts are the inputs of the decision.
type facts struct {
	now   time.Time
	csr   *certificatesv1.CertificateSigningRequest
	stage stage
	// home and account are the namespace and the ServiceAccount of this program, see Reconciler.
	home, account string
	// unmarkedCAs is that of Reconciler.
	unmarkedCAs bool
	// trust decides which requests for a first credential are approved without a person.
	trust approve.Trust
	// identity is how this program treats identities in requests of add-ons, see Reconciler.
	identity Identity
	// maxLifetime is the maximum lifetime of certificates of add-ons; zero for none.
	maxLifetime time.Duration
	// cluster is that of a request of a cluster, as the API server has it now; nil when there is none.
	cluster *clusterv1.ManagedCluster

	// addon is set for a request of an add-on.
	addon *addonFacts
	// unknown is why a fact could not be read.
	unknown error
}

// addonFacts are the facts of a request of an add-on.
type addonFacts struct {
	// ours reports whether this program manages the add-on; otherwise at most the cluster and the add-on are read.
	ours bool
	// cluster and addon are nil when they do not exist.
	cluster *clusterv1.ManagedCluster
	addon   *addonv1beta1.ManagedClusterAddOn
	// registrations are those that the hub allows the add-on.
	registrations []addonv1beta1.RegistrationConfig
	// objection is why the author of the add-on does not let the hub approve an open request.
	objection error
	// ca is the CA that signs the request, if signs is true.
	ca    addon.SigningCA
	signs bool
}

// isAccepted reports whether the hub accepts a cluster, which may be nil.
func isAccepted(cluster *clusterv1.ManagedCluster) bool {
	return cluster != nil && cluster.Spec.HubAcceptsClient
}

// unfinished reports whether a request may need action: it waits for approval, or for the certificate of a signer that
// is not built into Kubernetes.
func unfinished(csr *certificatesv1.CertificateSigningRequest) bool {
	return stageOf(csr) != stageFinished
}

// step is the one thing that a pass does.
type step string

const (
	stepNone    step = ""
	stepApprove step = "approve"
	stepReview  step = "review"
	stepSign    step = "sign"
	stepExpire  step = "expire"
	stepVouch   step = "vouch"
)

// plan is the decision about a request.
type plan struct {
	step step
	// verdict is the verdict that the step is based on.
	verdict approve.Verdict
	// ca is the Secret to sign with; use is the purpose that the Secret must allow.
	ca  types.NamespacedName
	use sign.Use
	// note is recorded for the author when there is no step.
	note *note
	// outcome is the outcome of the pass when there is no step.
	outcome reconcile.Outcome
}

// note is a message to the author of a request: an Event, and a condition of the request.
type note struct {
	// warning reports a problem, as opposed to waiting in the ordinary course.
	warning         bool
	reason, message string
}

// result is the result of the step of a plan.
type result struct {
	// verdict is final: it includes the access review.
	verdict approve.Verdict
	// err is why the step failed; a stepError when a known part of it did.
	err error
}

// part is a part of a step whose failure a person may have to repair.
type part string

const (
	partReadingCA part = "reading the CA"
	partAskingCA  part = "asking whom the CA serves"
	partUsingCA   part = "using the CA"
	partApproving part = "approving the certificate request"
	partStoring   part = "storing the certificate"
)

// stepError is why a part of a step failed.
type stepError struct {
	part part
	err  error
}

// Error returns the part and the cause.
func (e *stepError) Error() string { return fmt.Sprintf("%s: %s", e.part, e.err) }

// Unwrap returns the cause.
func (e *stepError) Unwrap() error { return e.err }

// Identity is how a program treats the identities in requests of add-ons for the API server of the hub. Two programs
// must agree on one that neither of them manages alone: the hub manager confirms it, and the program of the author
// approves the request. Admission policies see that confirmation, while they cannot read the request.
type Identity string

const (
	// IdentityTrusted is the zero value: requests of add-ons of this program are approved, and those of others are left to
	// them.
	IdentityTrusted Identity = ""
	// IdentityConfirmed is that of the hub manager: it confirms identities in requests of add-ons of other programs.
	IdentityConfirmed Identity = "Confirmed"
	// IdentityAwaited is that of the program of an author: it approves a request once the hub manager has confirmed it.
	IdentityAwaited Identity = "Awaited"
)

// stageOf returns the stage of a request.
func stageOf(csr *certificatesv1.CertificateSigningRequest) stage {
	switch {
	case len(csr.Status.Certificate) > 0,
		csrs.HasCondition(csr, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed):
		return stageFinished
	case !csrs.HasCondition(csr, certificatesv1.CertificateApproved):
		return stageOpen
	case forHub(csr):
		return stageFinished
	}
	return stageUnsigned
}

// forHub reports whether a request is for a credential of the API server of the hub.
func forHub(csr *certificatesv1.CertificateSigningRequest) bool {
	return csr.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName
}
