package addon

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
)

// tokenState is what is known of the token of a registration.
type tokenState struct {
	stored
	verdict token.Verdict
	// rotateAt is when the token is to be replaced, by our clock.
	rotateAt time.Time
}

// good reports whether the token needs no successor now.
func (s tokenState) good(now time.Time) bool {
	return s.verdict.Fits && !s.renew && now.Before(s.rotateAt)
}

// serveToken does the next step for one registration that gets a token.
func (r *Reconciler) serveToken(ctx context.Context, f facts, p place, reg registration) result {
	res := newResult(reg)
	have, err := r.loadToken(ctx, f, p, reg, false)
	if err == nil && !have.good(f.now) {
		// A cache may lag behind our own writes; another token is only asked for on proof.
		have, err = r.loadToken(ctx, f, p, reg, true)
	}
	if err != nil {
		return res.failed(err)
	}
	// Where the old token is good, the new one may be late without harm.
	res.served = have.verdict.Fits && !have.renew
	if have.good(f.now) {
		res.condition = token.Refreshed(have.verdict.ExpiresAt)
		res.outcome = reconcile.DoneUntil(have.rotateAt)
		return res.failed(r.store(ctx, f, p, reg, have.secret, tokenOf(have.secret)))
	}
	if reg.account.uid == "" {
		res.waits = reg.account.missing
		return res
	}
	if r.isMissing(ctx, p, have) {
		res.missing = p.namespace
		return res.told(fmt.Sprintf("namespace %s of the add-on agent does not exist or is being deleted on the cluster: "+
			"the token is asked for as soon as the namespace is there", p.namespace))
	}
	return r.refresh(ctx, f, p, reg, have, res)
}

// refresh asks for a token and stores it.
func (r *Reconciler) refresh(
	ctx context.Context, f facts, p place, reg registration, have tokenState, res result,
) result {
	served := res.served
	fresh, err := r.requestToken(ctx, f)
	if err != nil {
		res = res.failed(err)
		res.served = served
		return res
	}
	state := judgeToken(fresh, f, reg)
	if !state.verdict.Fits {
		res = res.failed(fmt.Errorf("the hub issued something else than was asked for: %s", state.verdict.Why))
		res.served = served
		return res
	}
	if err := r.store(ctx, f, p, reg, have.secret, fresh); err != nil {
		res = res.failed(err)
		res.served = served
		return res
	}
	log.FromContext(ctx).Info("stored a token", "secret", reg.secret, "rotateAt", state.rotateAt)
	res.served, res.condition = true, token.Refreshed(state.verdict.ExpiresAt)
	res.outcome = reconcile.DoneUntil(state.rotateAt)
	return res
}

// requestToken asks the hub for a token of the add-on's ServiceAccount, for the API server and bound to nothing else.
func (r *Reconciler) requestToken(ctx context.Context, f facts) (credential, error) {
	name := token.ServiceAccountName(f.name)
	seconds := r.TokenExpirationSeconds
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	who := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: name}}
	if err := r.Hub.GetClient().SubResource("token").Create(ctx, who, request); err != nil {
		return credential{}, fmt.Errorf("asking the hub for a token of ServiceAccount %s/%s: %w", f.cluster, name, err)
	}
	return credential{token: []byte(request.Status.Token), issuedAt: f.now.Truncate(time.Second)}, nil
}

// loadToken reads the Secret of a registration and judges the token in it.
func (r *Reconciler) loadToken(
	ctx context.Context, f facts, p place, reg registration, live bool,
) (tokenState, error) {
	have, err := r.load(ctx, f, p.side, reg, live)
	if err != nil {
		return tokenState{}, err
	}
	state := judgeToken(tokenOf(have.secret), f, reg)
	state.stored = have
	return state, nil
}

// judgeToken judges a token. Where the hub does not say which ServiceAccount is the one of now, that of the token is
// taken for it: what is not known is no reason to give up a credential.
//
// The instants in a token are by the clock of the hub. When we got it tells how far the two clocks are apart; so a
// clock that is wrong neither lets a token expire nor asks for one after the other.
func judgeToken(c credential, f facts, reg registration) tokenState {
	claims, err := token.Parse(c.token)
	if err != nil {
		return tokenState{verdict: token.Verdict{Why: err.Error()}}
	}
	uid, apart := reg.account.uid, time.Duration(0)
	if uid == "" {
		uid = claims.ServiceAccountUID
	}
	if !c.issuedAt.IsZero() {
		apart = c.issuedAt.Sub(claims.IssuedAt)
	}
	v := token.Judge(c.token, reg.account.user, uid, f.now.Add(-apart), f.cluster, f.name)
	return tokenState{verdict: v, rotateAt: v.RotateAt.Add(apart)}
}

// isMissing reports whether the namespace of the add-on agent is missing or going away. It is asked before a token is,
// because one that cannot be stored is of no use; what cannot be read is no obstacle.
func (r *Reconciler) isMissing(ctx context.Context, p place, have tokenState) bool {
	if have.secret != nil {
		return false
	}
	if r.seenMissing(p) {
		return true
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.sides[p.side].GetAPIReader().Get(ctx, types.NamespacedName{Name: p.namespace}, namespace)
	return apierrors.IsNotFound(err) || (err == nil && !namespace.DeletionTimestamp.IsZero())
}
