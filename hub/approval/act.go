package approval

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/csr/sign"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// act runs the step of the plan.
func (r *Reconciler) act(ctx context.Context, f facts, p plan) result {
	if p.step == stepApprove || p.step == stepReview || p.step == stepSign || p.step == stepVouch {
		var err error
		if f.csr, err = r.inFull(ctx, f.csr); err == nil && f.addon != nil && f.addon.ours {
			err = r.stillAsked(ctx, f.addon)
		}
		if err != nil {
			return result{verdict: p.verdict, err: err}
		}
	}
	switch p.step {
	case stepApprove:
		return result{verdict: p.verdict, err: r.approve(ctx, f, p.verdict)}
	case stepReview:
		return r.review(ctx, f, p)
	case stepSign:
		return result{verdict: p.verdict, err: r.sign(ctx, f, p)}
	case stepExpire:
		return result{err: r.expire(ctx, f)}
	case stepVouch:
		return result{err: r.vouch(ctx, f, p.verdict)}
	case stepNone:
	}
	return result{}
}

// inFull reads from the API server the request that was judged, because the cache holds a part of it only, and a write
// of its status writes its metadata, too.
func (r *Reconciler) inFull(
	ctx context.Context, judged *certificatesv1.CertificateSigningRequest,
) (*certificatesv1.CertificateSigningRequest, error) {
	var csr certificatesv1.CertificateSigningRequest
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(judged), &csr); err != nil {
		return nil, fmt.Errorf("reading certificate request %s: %w", judged.Name, err)
	}
	if csr.UID != judged.UID || csr.ResourceVersion != judged.ResourceVersion {
		return nil, apierrors.NewConflict(certificatesv1.Resource("certificatesigningrequests"), csr.Name,
			errors.New("it has changed since it was judged"))
	}
	return &csr, nil
}

// stillAccepted returns an error unless the hub accepts the cluster of an add-on now: the cache may be from before a
// denial. The event of that starts the next pass. Programs of authors may list clusters and not get one.
func (r *Reconciler) stillAccepted(ctx context.Context, judged *clusterv1.ManagedCluster) error {
	live, err := reconcile.GetListed[*clusterv1.ManagedCluster](ctx, r.Live, client.ObjectKeyFromObject(judged),
		&clusterv1.ManagedClusterList{})
	if err != nil {
		return fmt.Errorf("asking whether the hub accepts cluster %s: %w", judged.Name, err)
	}
	if !isAccepted(live) {
		return apierrors.NewConflict(clusterv1.Resource("managedclusters"), judged.Name,
			errors.New("the hub does not accept the cluster any more"))
	}
	return nil
}

// stillAsked returns an error unless the cluster of an add-on is accepted and the add-on exists as it was judged.
func (r *Reconciler) stillAsked(ctx context.Context, of *addonFacts) error {
	if err := r.stillAccepted(ctx, of.cluster); err != nil {
		return err
	}
	return r.stillThere(ctx, of.addon)
}

// stillThere returns an error unless the add-on of a request exists now, and is as it was when its registrations were
// computed: the cache may be from before its deletion, or before an edit with which it registers something else.
func (r *Reconciler) stillThere(ctx context.Context, judged *addonv1beta1.ManagedClusterAddOn) error {
	live, err := r.AddOns.SameAddOn(ctx, r.Live, judged)
	if err != nil || (live != nil && registersSame(live, judged)) {
		return err
	}
	return reconcile.Behind(addonv1beta1.GroupName, "managedclusteraddons", judged.Name)
}

// review creates an access review for the renewal and approves the request if it is allowed.
func (r *Reconciler) review(ctx context.Context, f facts, p plan) result {
	review := &authorizationv1.SubjectAccessReview{Spec: approve.RenewalReview(f.csr)}
	if err := r.Client.Create(ctx, review); err != nil {
		return result{verdict: p.verdict, err: fmt.Errorf("reviewing the access of %s: %w", f.csr.Spec.Username, err)}
	}
	verdict := p.verdict.Reviewed(review.Status.Allowed && !review.Status.Denied)
	if verdict.Decision != approve.DecisionApprove {
		return result{verdict: verdict}
	}
	return result{verdict: verdict, err: r.approve(ctx, f, verdict)}
}

// approve adds the condition Approved to the request that was judged; the API server refuses the update of any other.
func (r *Reconciler) approve(ctx context.Context, f facts, v approve.Verdict) error {
	csr := f.csr.DeepCopy()
	now := metav1.NewTime(f.now)
	csrs.RemoveComment(csr, csrs.ConditionApprovedByHub)
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: v.Reason, Message: v.Message, LastUpdateTime: now, LastTransitionTime: now,
	})
	if err := r.Client.SubResource("approval").Update(ctx, csr); err != nil {
		return &stepError{partApproving, err}
	}
	r.counters.countApproved(csr)
	log.FromContext(ctx).Info("approved a certificate request", "requester", csr.Spec.Username,
		"subject", v.Expected.User, "signer", csr.Spec.SignerName)
	return nil
}

// sign reads the CA, signs, and stores the certificate.
func (r *Reconciler) sign(ctx context.Context, f facts, p plan) error {
	var secret corev1.Secret
	if err := r.Secrets.Get(ctx, p.ca, &secret); err != nil {
		return &stepError{partReadingCA, err}
	}
	if err := sign.CheckServes(&secret, p.use); err != nil {
		return &stepError{partAskingCA, err}
	}
	authority, err := sign.ReadAuthority(&secret)
	if err != nil {
		return &stepError{partUsingCA, err}
	}
	certificate, err := authority.Sign(sign.Issuance{
		CSR: f.csr, Expected: p.verdict.Expected, Lifetime: f.addon.ca.Lifetime, Limit: f.maxLifetime,
		Now: f.now, Random: r.Random,
	})
	if err != nil {
		return &stepError{partUsingCA, fmt.Errorf("CA Secret %s: %w", p.ca, err)}
	}
	csr := f.csr.DeepCopy()
	csr.Status.Certificate = certificate
	csrs.RemoveComment(csr, csrs.ConditionApprovedByHub)
	csrs.RemoveComment(csr, csrs.ConditionSignedByHub)
	if err := r.Client.Status().Update(ctx, csr); err != nil {
		return &stepError{partStoring, err}
	}
	r.counters.countSigned(csr)
	log.FromContext(ctx).Info("signed a certificate", "subject", p.verdict.Expected.User, "signer", csr.Spec.SignerName)
	return nil
}
