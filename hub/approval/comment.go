package approval

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// comment adds the note to the status of the request as a condition, unless it exists. Without the right to do so, the
// Event alone must do.
func (r *Reconciler) comment(ctx context.Context, f facts, n *note) reconcile.Outcome {
	if n == nil || !concernsRequester(f.csr) || approve.TooLarge(f.csr) || !r.backlog.mayReport(f.csr) {
		return reconcile.Done()
	}
	comment := commentOf(f, n)
	if had, found := csrs.CommentOn(f.csr, comment.Kind); found && had == comment {
		return reconcile.Done()
	}
	csr, err := r.inFull(ctx, f.csr)
	if err == nil {
		comment.Put(csr, f.now)
		err = r.Client.SubResource("approval").Update(ctx, csr)
	}
	switch {
	case apierrors.IsForbidden(err):
		log.FromContext(ctx).V(1).Info("may not comment on a certificate request", "request", f.csr.Name,
			"error", err.Error())
		return reconcile.Done()
	case err == nil, apierrors.IsNotFound(err):
		return reconcile.Done()
	}
	return reconcile.FromError(fmt.Errorf("commenting on certificate request %s: %w", f.csr.Name, err))
}

// vouch writes on a request of an add-on that another program approves whether the identity in it is that of the
// add-on.
func (r *Reconciler) vouch(ctx context.Context, f facts, v approve.Verdict) error {
	if !r.backlog.mayReport(f.csr) {
		return nil
	}
	csr := f.csr.DeepCopy()
	v.Vouch(csr, f.now)
	err := client.IgnoreNotFound(r.Client.SubResource("approval").Update(ctx, csr))
	if apierrors.IsForbidden(err) && v.Decision != approve.DecisionApprove {
		return nil // The policies refuse a word about a request that the agent of its cluster did not make.
	}
	if err != nil {
		return fmt.Errorf("confirming the identity in certificate request %s: %w", csr.Name, err)
	}
	log.FromContext(ctx).Info("judged the identity in a certificate request", "request", csr.Name, "reason", v.Reason)
	return nil
}

// expire deletes a request that has been open for too long, as Kubernetes does with requests without a condition.
func (r *Reconciler) expire(ctx context.Context, f facts) error {
	uid, version := f.csr.UID, f.csr.ResourceVersion
	err := r.Client.Delete(ctx, f.csr, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("removing certificate request %s, which is open for too long: %w", f.csr.Name, err)
	}
	log.FromContext(ctx).Info("removed a certificate request that nobody approved for a day", "request", f.csr.Name)
	return nil
}
