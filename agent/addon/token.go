package addon

import (
	"bytes"
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
)

// tokenState is the state of the token of a registration.
type tokenState struct {
	stored
	verdict token.Verdict
	// rotateAt is the time at which the token is replaced, by our clock.
	rotateAt time.Time
	// issuedAt is that of the credential, unless it cannot be.
	issuedAt time.Time
}

// good reports whether the token need not be replaced now.
func (s tokenState) good(now time.Time) bool {
	return s.verdict.Fits && !s.renew && now.Before(s.rotateAt)
}

// serveToken does the next step for a registration that gets a token.
func (s *serving) serveToken(ctx context.Context) result {
	res := newResult(s.reg)
	have, err := s.loadToken(ctx, false)
	if err == nil && !have.good(s.facts.now) {
		have, err = s.confirmToken(ctx)
	}
	// While the old token is valid, the add-on is served.
	served := have.verdict.Fits && !have.renew
	if err != nil {
		res = res.failed(err)
		res.served = served
		return res
	}
	res.served = served
	if have.good(s.facts.now) {
		res.condition = token.Refreshed(have.verdict.ExpiresAt)
		res.outcome = s.untilToken(have.rotateAt, have.secret)
		kept := credential{token: tokenOf(have.secret).token, issuedAt: have.issuedAt}
		return res.failed(s.store(ctx, have.secret, kept))
	}
	if s.reg.account.uid == "" {
		res.waits = s.reg.account.missing
		return res
	}
	if s.namespaceMissing(ctx, have) {
		res.missing = s.place.namespace
		res.outcome = s.awaitNamespace(s.place, s.facts.now).And(s.restoreNamespace(ctx))
		return res.withFailure(fmt.Sprintf("namespace %s of the add-on agent does not exist or is being deleted on "+
			"the cluster: the token is asked for as soon as the namespace is there", s.place.namespace))
	}
	return s.refresh(ctx, have, res)
}

// messageRushed is the failure while no more tokens are asked for.
const messageRushed = "%d tokens were issued within %s, so something removes or replaces what comes of them, or the " +
	"hub issues tokens that are due at once; a new one is asked for at %s"

// refresh requests a token and stores it, but not more of them than certificates: each is valid for a long time, and
// nobody can take one back. That a token is due is no exception: who may write the Secret can make up one that is, and
// a token is due minutes before it ends.
func (s *serving) refresh(ctx context.Context, have tokenState, res result) result {
	served := res.served
	fresh, kept := s.unstoredToken()
	if !kept {
		times, _ := s.issued.Get(s.facts.name)
		if again := issue.Next(times, s.facts.now); s.facts.now.Before(again) {
			res.outcome = reconcile.DoneUntil(again)
			return res.withFailure(fmt.Sprintf(messageRushed, issue.MaxRecent, issue.RecentWindow,
				again.UTC().Format(time.RFC3339)))
		}
		var err error
		if fresh, err = s.requestToken(ctx); err != nil {
			res = res.failed(err)
			res.served = served
			return res
		}
	}
	// The answer may have taken its time.
	s.readClocks(&s.facts)
	state := judgeToken(fresh, s.facts, s.reg)
	if !state.verdict.Fits {
		res = res.failed(fmt.Errorf("the hub issued something else than was asked for: %s", state.verdict.Why))
		res.served = served
		return res
	}
	if err := s.store(ctx, have.secret, fresh); err != nil {
		s.unstored.Put(unstoredKey{s.place.side, s.reg.secret}, fresh)
		res = res.failed(err)
		res.served = served
		return res
	}
	log.FromContext(ctx).Info("stored a token", "secret", s.reg.secret, "rotateAt", state.rotateAt)
	res.served, res.condition = true, token.Refreshed(state.verdict.ExpiresAt)
	res.outcome = s.untilToken(state.rotateAt, have.secret)
	return res
}

// unstoredToken returns the token that could not be stored before, if it still fits: each is valid for a long time, and
// nobody can take one back.
func (s *serving) unstoredToken() (credential, bool) {
	key := unstoredKey{s.place.side, s.reg.secret}
	fresh, ok := s.unstored.Get(key)
	s.unstored.Forget(key)
	return fresh, ok && judgeToken(fresh, s.facts, s.reg).good(s.facts.now)
}

// requestToken requests a token of the add-on's ServiceAccount for the API server, bound to no other object.
func (s *serving) requestToken(ctx context.Context) (credential, error) {
	name := token.ServiceAccountName(s.facts.name)
	seconds := s.TokenExpirationSeconds
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	who := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.facts.cluster, Name: name}}
	if err := s.Hub.GetClient().SubResource("token").Create(ctx, who, request); err != nil {
		return credential{}, fmt.Errorf("asking the hub for a token of ServiceAccount %s/%s: %w", s.facts.cluster, name, err)
	}
	s.noteIssued(s.facts)
	return credential{token: []byte(request.Status.Token), issuedAt: s.facts.hubNow().Truncate(time.Second)}, nil
}

// noteIssued remembers that the hub issued a token now, and forgets the add-ons that got none lately.
func (r *Reconciler) noteIssued(f facts) {
	r.issued.Change(f.name, func(times []time.Time) ([]time.Time, bool) {
		return append(issue.Recent(times, f.now), f.now), true
	})
	r.issued.Take(func(_ string, times []time.Time) bool { return len(issue.Recent(times, f.now)) == 0 })
}

// loadToken reads the Secret of the registration and judges the token in it.
func (s *serving) loadToken(ctx context.Context, live bool) (tokenState, error) {
	have, err := s.load(ctx, live)
	if err != nil {
		return tokenState{}, err
	}
	state := judgeToken(tokenOf(have.secret), s.facts, s.reg)
	state.stored = have
	return state, nil
}

// confirmToken judges a token that seems to be due again, by what the API servers say: a cache may lag behind our own
// writes, and our clock may have been set since the hub last said its time. A token that is replaced stays valid, and
// nobody can take it back.
func (s *serving) confirmToken(ctx context.Context) (tokenState, error) {
	have, err := s.loadToken(ctx, true)
	if err != nil || have.good(s.facts.now) || have.secret == nil {
		return have, err
	}
	key := types.NamespacedName{Namespace: s.facts.cluster, Name: s.facts.name}
	if err := s.Hub.GetAPIReader().Get(ctx, key, s.addons.WatchedAddOn()); client.IgnoreNotFound(err) != nil {
		return have, fmt.Errorf("asking the hub for the time before a token is replaced: %w", err)
	}
	s.readClocks(&s.facts)
	judged := judgeToken(tokenOf(have.secret), s.facts, s.reg)
	judged.stored = have.stored
	return judged, nil
}

const (
	// clockSlack is by how much two measurements of the time at the hub may differ.
	clockSlack = time.Minute
	// earlySlack is for how long a token may not be valid yet: the API servers of one hub may disagree about the time,
	// and a token that one of them issued cannot be revoked.
	earlySlack = 10 * time.Minute
	// lifeSlack is by how much a token may be valid for longer than the longest that a hub issues.
	lifeSlack = 24 * time.Hour
)

// judgeToken judges a token. If the UID of the present ServiceAccount is unknown, the UID in the token counts: unknown
// is not a reason to give up a credential.
//
// The times in a token are by the clock of the hub, and so is the time at which it is judged. Where the agent does not
// know the time at the hub, the time at which it got the token gives the difference of the clocks, so a wrong clock
// neither lets a token expire nor requests one after the other. What is recorded counts for nothing else: users of the
// cluster may edit it, and an earlier version recorded the time by its own clock.
func judgeToken(c credential, f facts, reg registration) tokenState {
	claims, err := token.Parse(c.token)
	if err != nil {
		return tokenState{verdict: token.Verdict{Why: err.Error()}}
	}
	now, state := f.hubNow(), tokenState{issuedAt: c.issuedAt}
	apart := c.issuedAt.Sub(claims.IssuedAt)
	if c.issuedAt.IsZero() || f.hubKnown || c.issuedAt.After(now.Add(clockSlack)) {
		if apart.Abs() > clockSlack {
			state.issuedAt = claims.IssuedAt
		}
		apart = 0
	}
	uid := reg.account.uid
	if uid == "" {
		uid = claims.ServiceAccountUID
	}
	raw := string(bytes.TrimSpace(c.token))
	state.verdict = claims.Judge(reg.account.user, uid, now.Add(-apart), raw, f.cluster, f.name)
	if v := &state.verdict; v.Fits && f.hubKnown && claims.IssuedAt.After(now.Add(earlySlack)) {
		v.Fits, v.Why = false, "the token is not valid before "+claims.IssuedAt.Format(time.RFC3339)
	}
	asked := f.tokenLife()
	if v, life := &state.verdict, claims.ExpiresAt.Sub(claims.IssuedAt); v.Fits && life > longestLife(asked) {
		v.Fits, v.Why = false, fmt.Sprintf("the token ends at %s, later than any that a hub issues",
			claims.ExpiresAt.Format(time.RFC3339))
	}
	state.rotateAt = f.toLocal(rotation(claims, state.verdict.RotateAt, asked, apart))
	return state
}

// longestLife is the longest life of a token that a hub may have issued. API servers cut what is asked for
// (--service-account-max-token-expiration), extend some tokens to a year
// (--service-account-extend-token-expiration), and earlier settings or another agent may have asked for another life.
// What is longer, who may write the Secret made up: it would never be replaced.
func longestLife(asked time.Duration) time.Duration {
	return max(asked, time.Duration(token.DefaultExpirationSeconds)*time.Second) + lifeSlack
}

// rotation returns when a token is replaced that came with clocks that were apart. One that was far ahead may be set
// right at any time, so such a token is replaced when a right clock says so, but not before a quarter of its life is
// over: where the clock stays wrong, tokens are replaced earlier than they need to be. One that is valid for longer
// than is asked for now is replaced at the same share of the life that is asked for.
func rotation(claims token.Claims, due time.Time, asked, apart time.Duration) time.Time {
	life := claims.ExpiresAt.Sub(claims.IssuedAt)
	if life > asked {
		share := float64(due.Sub(claims.IssuedAt)) / float64(life)
		due, life = claims.IssuedAt.Add(time.Duration(share*float64(asked))), asked
	}
	if apart <= life/8 {
		return due.Add(apart)
	}
	if quarter := claims.IssuedAt.Add(apart + life/4); due.Before(quarter) {
		return quarter
	}
	return due
}

// namespaceMissing reports whether the namespace of the add-on agent is missing or being deleted. It is checked before
// a token is requested, because a token that cannot be stored is useless. A namespace that cannot be read counts as
// there.
func (s *serving) namespaceMissing(ctx context.Context, have tokenState) bool {
	if have.secret != nil {
		return false
	}
	if s.namespaceAbsent(s.place) {
		return true
	}
	state, err := readPresence(ctx, s.sides[s.place.side].GetAPIReader(), s.place.namespace)
	return err == nil && (state == presenceMissing || state == presenceEnding)
}
