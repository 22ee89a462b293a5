package approval

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// recordEvent records the note as an Event and in the log, once per request and note, and counts its rule, once per
// request and rule. After a restart, the existing Event prevents a second one. An Event that cannot be written does not
// hold up the count.
func (r *Reconciler) recordEvent(ctx context.Context, f facts, n *note) reconcile.Outcome {
	if n == nil || !r.reported.isNew(noteHash(f.csr, n)) {
		return reconcile.Done()
	}
	if !r.backlog.mayReport(f.csr) {
		r.count(f.csr, n)
		r.reported.add(noteHash(f.csr, n))
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
	if about := addOnEvent(f, n); about != nil {
		if err := r.Client.Create(ctx, about); err != nil && !apierrors.IsAlreadyExists(err) {
			return reconcile.Retry(fmt.Errorf("writing an event about add-on %s/%s: %w",
				about.Namespace, about.InvolvedObject.Name, err))
		}
	}
	r.reported.add(noteHash(f.csr, n))
	return reconcile.Done()
}

// count counts a request under the rule of a note, unless the same rule was counted before.
func (r *Reconciler) count(csr *certificatesv1.CertificateSigningRequest, n *note) {
	rule := noteHash(csr, &note{reason: n.reason})
	if !r.reported.isNew(rule) {
		return
	}
	r.reported.add(rule)
	r.counters.countRefused(csr, n.reason)
}

// eventOf builds the Event for a note. Its name depends only on request and note, so that it exists once.
func eventOf(f facts, n *note) *corev1.Event {
	return newEvent(f, n, eventName(f.csr, n), corev1.ObjectReference{
		APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest",
		Name: f.csr.Name, UID: f.csr.UID,
	})
}

// addOnEvent builds the Event on the add-on for a note about a request that is approved and not signed; nil for any
// other note. The author of the add-on has to repair that, and does not look at requests. It is one Event for all
// requests of the add-on on a cluster.
func addOnEvent(f facts, n *note) *corev1.Event {
	if f.stage != stageUnsigned || f.addon == nil || f.addon.addon == nil {
		return nil
	}
	about := f.addon.addon
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%s", about.UID, n.reason, n.message)
	name := fmt.Sprintf("%s.%x", about.Name[:min(len(about.Name), maxNameInEvent)], h.Sum64())
	return newEvent(f, n, name, corev1.ObjectReference{
		APIVersion: addonv1beta1.GroupVersion.String(), Kind: "ManagedClusterAddOn",
		Namespace: about.Namespace, Name: about.Name, UID: about.UID,
	})
}

// newEvent builds an Event. Those on objects without a namespace are in "default".
func newEvent(f facts, n *note, name string, about corev1.ObjectReference) *corev1.Event {
	kind := corev1.EventTypeNormal
	if n.warning {
		kind = corev1.EventTypeWarning
	}
	at := metav1.NewTime(f.now)
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: cmp.Or(about.Namespace, metav1.NamespaceDefault), Name: name},
		InvolvedObject: about,
		Type:           kind, Reason: n.reason, Message: n.message,
		Source:              corev1.EventSource{Component: controllerName},
		ReportingController: controllerName,
		FirstTimestamp:      at, LastTimestamp: at, Count: 1,
	}
}

// eventName starts with the name of the request, shortened and reduced to the characters that names of Events allow.
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

// noteHash identifies a note of a request; two requests with the same name differ by UID.
func noteHash(csr *certificatesv1.CertificateSigningRequest, n *note) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%s", csr.UID, n.reason, n.message)
	return h.Sum64()
}
