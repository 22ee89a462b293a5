package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// reasonCAMissing, reasonCAForbidden and reasonCAInvalid tell what is wrong with the CA of a custom signer.
	reasonCAMissing   = "SigningCAMissing"
	reasonCAForbidden = "SigningCAForbidden"
	reasonCAInvalid   = "SigningCAInvalid"
	// reasonCANotServing tells that the CA is not meant for this signer or this add-on.
	reasonCANotServing = "SigningCANotServing"
	// reasonApprovalForbidden and reasonSigningForbidden tell that the hub manager lacks the rights for a signer.
	reasonApprovalForbidden = "ApprovalForbidden"
	reasonSigningForbidden  = "SigningForbidden"

	// firstLook and lastLook bound the time after which something is looked at again that cannot be watched.
	firstLook, lastLook = time.Second, 2 * time.Minute
	// maxTold is how many notes are remembered; a forgotten one costs a write that the API server refuses.
	maxTold = 4096
	// maxNameInEvent leaves room in the name of an Event behind the name of its request.
	maxNameInEvent = 200
)

// conclude says what the author is told and how the pass ends.
func conclude(f facts, p plan, done result) (*note, reconcile.Outcome) {
	switch {
	case p.step == stepNone:
		return p.note, p.outcome.And(reconcile.DoneUntil(expiry(f)))
	case p.step == stepExpire:
		return nil, reconcile.FromError(done.err)
	case done.err == nil && done.verdict.Decision == csrs.DecisionApprove:
		return nil, reconcile.Done()
	case done.err == nil:
		return noteOf(done.verdict), reconcile.Waiting(nextLook(f.csr.CreationTimestamp.Time, f.now))
	}
	if n := explain(f, p, done.err); n != nil {
		return n, reconcile.Waiting(nextLook(approvedAt(f.csr), f.now))
	}
	return nil, reconcile.FromError(ignoreGone(done.err))
}

// explain turns the failures that a person must repair into what is to be done; nil for all others.
func explain(f facts, p plan, err error) *note {
	manager, addOns := f.home+"/"+names.ServiceAccountManager, f.home+"/"+names.ServiceAccountAddons
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
			"type %s; the request is then signed by itself.", signer, p.ca, corev1.SecretTypeTLS)
	case failed.part == partReadingCA && forbidden:
		return warn(reasonCAForbidden, "Not signed: the CA of signer %s is Secret %s, which the hub manager may not read. "+
			"Grant ServiceAccount %s the verb get on that Secret; the request is then signed by itself.",
			signer, p.ca, addOns)
	case failed.part == partAskingCA:
		return warn(reasonCANotServing, "Not signed: %s; the request is then signed by itself.", failed.err)
	case failed.part == partUsingCA:
		return warn(reasonCAInvalid, "Not signed: the CA of signer %s cannot be used. %s.", signer, failed.err)
	case failed.part == partApproving && forbidden:
		return warn(reasonApprovalForbidden, "Not approved: the request is a good one, but the hub manager may not approve "+
			"for signer %s. Grant ServiceAccount %s the verb approve on signers %s in API group %s.",
			signer, manager, signer, certificatesv1.GroupName)
	case failed.part == partStoring && forbidden:
		return warn(reasonSigningForbidden, "Not signed: the hub manager may not sign for signer %s. Grant ServiceAccount "+
			"%s the verb sign on signers %s in API group %s.", signer, manager, signer, certificatesv1.GroupName)
	}
	return nil
}

// ignoreGone forgets that a request is gone: there is nobody left to answer.
func ignoreGone(err error) error {
	var failed *stepError
	if errors.As(err, &failed) && (failed.part == partApproving || failed.part == partStoring) {
		return client.IgnoreNotFound(err)
	}
	return err
}

// nextLook returns when to look again at what has been waiting since an instant: soon at first, then ever later. It
// needs no memory, and a restarted hub continues at the same pace.
func nextLook(since, now time.Time) time.Time {
	return now.Add(min(max(now.Sub(since)/2, firstLook), lastLook))
}

// tell writes the note as an Event on the request and into the log, once per request and note, and counts the rule
// that it names, once per request and rule. The Event is the memory of both: a hub that was restarted says nothing
// twice. The count does not wait for an Event that cannot be written at the moment.
func (r *Reconciler) tell(ctx context.Context, f facts, n *note) reconcile.Outcome {
	if n == nil || !r.told.isNew(noteHash(f.csr, n)) {
		return reconcile.Done()
	}
	if !r.crowd.mayTell(f.csr) {
		r.count(f.csr, n)
		r.told.add(noteHash(f.csr, n))
		return reconcile.Done()
	}
	err := r.Client.Create(ctx, eventOf(f, n))
	if !apierrors.IsAlreadyExists(err) {
		r.count(f.csr, n)
		if err != nil {
			return reconcile.Retry(fmt.Errorf("writing an event about certificate request %s: %w", f.csr.Name, err))
		}
		log.FromContext(ctx).Info("left a certificate request alone", "rule", n.reason, "request", f.csr.Name,
			"requester", f.csr.Spec.Username, "message", n.message)
	}
	r.told.add(noteHash(f.csr, n))
	return reconcile.Done()
}

// count counts a request under the rule of a note, unless another note with the same rule was counted.
func (r *Reconciler) count(csr *certificatesv1.CertificateSigningRequest, n *note) {
	rule := noteHash(csr, &note{reason: n.reason})
	if !r.told.isNew(rule) {
		return
	}
	r.told.add(rule)
	r.counters.countRefused(csr, n.reason)
}

// eventOf writes a note as an Event whose name depends on request and note alone, so that it exists once.
func eventOf(f facts, n *note) *corev1.Event {
	kind := corev1.EventTypeNormal
	if n.warning {
		kind = corev1.EventTypeWarning
	}
	at := metav1.NewTime(f.now)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault,
			Name:      eventName(f.csr, n),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest",
			Name: f.csr.Name, UID: f.csr.UID,
		},
		Type: kind, Reason: n.reason, Message: n.message,
		Source:              corev1.EventSource{Component: controllerName},
		ReportingController: controllerName,
		FirstTimestamp:      at, LastTimestamp: at, Count: 1,
	}
}

// eventName begins with the name of the request, cut to what fits. Requests may be called anything, Events not.
func eventName(csr *certificatesv1.CertificateSigningRequest, n *note) string {
	name := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') || r == '-' {
			return r
		}
		return '-'
	}, csr.Name)
	name = strings.Trim(name[:min(len(name), maxNameInEvent)], "-")
	return fmt.Sprintf("%s.%x", cmp.Or(name, "request"), noteHash(csr, n))
}

// noteHash tells notes apart, and requests that follow one another under the same name.
func noteHash(csr *certificatesv1.CertificateSigningRequest, n *note) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%s", csr.UID, n.reason, n.message)
	return h.Sum64()
}

// told remembers which notes were written, so that they are not sent again only to be refused. It is a cache: what it
// forgets is found out from the API server.
type told struct {
	once  sync.Once
	notes *lru.Cache
}

func (t *told) isNew(hash uint64) bool {
	_, found := t.cache().Get(hash)
	return !found
}

func (t *told) add(hash uint64) { t.cache().Add(hash, struct{}{}) }

func (t *told) cache() *lru.Cache {
	t.once.Do(func() { t.notes = lru.New(maxTold) })
	return t.notes
}
