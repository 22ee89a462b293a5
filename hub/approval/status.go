package approval

import (
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/pause"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// reasonCAMissing, reasonCAForbidden and reasonCAInvalid are problems with the CA of a custom signer.
	reasonCAMissing   = "SigningCAMissing"
	reasonCAForbidden = "SigningCAForbidden"
	reasonCAInvalid   = "SigningCAInvalid"
	// reasonCANotServing means that the CA is not for this signer or add-on.
	reasonCANotServing = "SigningCANotServing"
	// reasonApprovalForbidden and reasonSigningForbidden mean that the hub manager lacks a right for a signer.
	reasonApprovalForbidden = "ApprovalForbidden"
	reasonSigningForbidden  = "SigningForbidden"

	// firstRetry and lastRetry bound the delay of retries that no watch triggers.
	firstRetry, lastRetry = time.Second, 2 * time.Minute
	// maxReportedNotes is the size of the cache of recorded notes; a forgotten note costs one refused write.
	maxReportedNotes = 4096
	// maxNameInEvent leaves room for the hash in the name of an Event.
	maxNameInEvent = 200
)

// conclude returns the note for the author and the outcome of the pass.
func conclude(f facts, p plan, done result) (*note, reconcile.Outcome) {
	switch {
	case p.step == stepNone:
		return p.note, p.outcome.And(reconcile.DoneUntil(expiry(f)))
	case p.step == stepExpire, p.step == stepVouch:
		return nil, reconcile.FromError(done.err)
	case done.err == nil && done.verdict.Decision == approve.DecisionApprove:
		return nil, reconcile.Done()
	case done.err == nil:
		return noteOf(done.verdict), reconcile.Waiting(nextRetry(f.csr.CreationTimestamp.Time, f.now))
	}
	if n := explain(f, p, done.err); n != nil {
		return n, reconcile.Waiting(nextRetry(csrs.ApprovedAt(f.csr), f.now))
	}
	return nil, reconcile.FromError(ignoreGone(done.err))
}

// explain returns a note for an error that a person must repair; nil for any other.
func explain(f facts, p plan, err error) *note {
	who := "the hub manager"
	manager, addOns := f.home+"/"+names.ServiceAccountManager, f.home+"/"+names.ServiceAccountAddons
	if f.account != "" {
		who, manager, addOns = "the manager of the add-on", f.account, f.account
	}
	signer := f.csr.Spec.SignerName
	warn := func(reason, format string, args ...any) *note {
		return &note{true, reason, fmt.Sprintf(format, args...)}
	}
	var failed *stepError
	if !errors.As(err, &failed) {
		return nil
	}
	forbidden := apierrors.IsForbidden(err)
	switch {
	case failed.part == partReadingCA && apierrors.IsNotFound(err):
		return warn(reasonCAMissing, "Not signed: the CA of signer %s is Secret %s, which does not exist. Create it with "+
			"type %s; the request is then signed automatically.", signer, p.ca, corev1.SecretTypeTLS)
	case failed.part == partReadingCA && forbidden:
		return warn(reasonCAForbidden, "Not signed: the CA of signer %s is Secret %s, which %s may not read. "+
			"Grant ServiceAccount %s the verb get on that Secret; the request is then signed automatically.",
			signer, p.ca, who, addOns)
	case failed.part == partAskingCA:
		return warn(reasonCANotServing, "Not signed: %s; the request is then signed automatically.", failed.err)
	case failed.part == partUsingCA:
		return warn(reasonCAInvalid, "Not signed: the CA of signer %s cannot be used. %s.", signer, failed.err)
	case failed.part == partApproving && forbidden:
		return warn(reasonApprovalForbidden, "Not approved: the request is a good one, but %s may not approve "+
			"for signer %s. Grant ServiceAccount %s the verb approve on signers %s in API group %s.",
			who, signer, manager, signer, certificatesv1.GroupName)
	case failed.part == partStoring && forbidden:
		return warn(reasonSigningForbidden, "Not signed: %s may not sign for signer %s. Grant ServiceAccount "+
			"%s the verb sign on signers %s in API group %s.", who, signer, manager, signer, certificatesv1.GroupName)
	}
	return nil
}

// ignoreGone ignores that the request itself is gone.
func ignoreGone(err error) error {
	var failed *stepError
	if errors.As(err, &failed) && (failed.part == partApproving || failed.part == partStoring) {
		return client.IgnoreNotFound(err)
	}
	return err
}

// nextRetry returns when to retry, given since when a request waits: soon at first, then ever later. It needs no
// memory, so a restart changes nothing.
func nextRetry(since, now time.Time) time.Time {
	return now.Add(pause.Growing{First: firstRetry, Last: lastRetry}.Since(now.Sub(since)))
}
