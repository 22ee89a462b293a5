package addon

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
)

const helloAccount = "system:serviceaccount:c1:hello-agent"

// jwt returns an unsigned token.
func jwt(user, uid string, issued, expires time.Time) []byte {
	claims := fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`,
		user, issued.Unix(), expires.Unix(), uid)
	return []byte("e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x")
}

// withTokens returns facts of an agent that takes tokens, with the add-on's registrations and conditions.
func withTokens(registrations []addonv1beta1.RegistrationConfig, conditions ...metav1.Condition) facts {
	f := addonWith(registrations...)
	f.driver = token.Driver
	f.addon.Status.Conditions = conditions
	return f
}

// Shows: registration/token-judged
func TestPlanRegistrationsWithTokens(t *testing.T) {
	ready := *token.Ready("c1", "hello", "u1")
	silent := "the hub has not said yet, in condition TokenInfrastructureReady, that ServiceAccount c1/hello-agent is there"
	declared := hubClient("token", helloAccount)
	tests := map[string]struct {
		registrations []addonv1beta1.RegistrationConfig
		conditions    []metav1.Condition
		declare       bool
		uid           types.UID
		missing       string
	}{
		"a declared registration whose ServiceAccount is there gets a token": {
			registrations: []addonv1beta1.RegistrationConfig{declared}, conditions: []metav1.Condition{ready}, uid: "u1",
		},
		"what is not declared waits, whatever the hub said of an earlier time": {
			registrations: []addonv1beta1.RegistrationConfig{hubClient("csr", "u", "g")},
			conditions:    []metav1.Condition{ready}, declare: true, missing: silent,
		},
		"a subject that the hub changed is declared again": {
			registrations: []addonv1beta1.RegistrationConfig{hubClient("token", "")},
			conditions:    []metav1.Condition{ready}, declare: true, missing: silent,
		},
		"groups are cleared": {
			registrations: []addonv1beta1.RegistrationConfig{hubClient("token", helloAccount, "g")},
			conditions:    []metav1.Condition{ready}, declare: true, missing: silent,
		},
		"a registration without kubeClient is declared": {
			registrations: []addonv1beta1.RegistrationConfig{{Type: addonv1beta1.KubeClient}}, declare: true, missing: silent,
		},
		"a silent hub is waited for": {
			registrations: []addonv1beta1.RegistrationConfig{declared}, missing: silent,
		},
		"a hub that failed is quoted": {
			registrations: []addonv1beta1.RegistrationConfig{declared},
			conditions:    []metav1.Condition{*token.NotReady("no quota")},
			missing:       "the hub has no ServiceAccount c1/hello-agent ready: Failed to apply token infrastructure: no quota",
		},
		"a hub that cannot be understood is quoted": {
			registrations: []addonv1beta1.RegistrationConfig{declared},
			conditions:    []metav1.Condition{{Type: "TokenInfrastructureReady", Status: "True", Message: "all well"}},
			missing: "condition TokenInfrastructureReady of the hub does not name the UID of ServiceAccount " +
				`c1/hello-agent: it says "all well"`,
		},
		"the ServiceAccount of another add-on does not count": {
			registrations: []addonv1beta1.RegistrationConfig{declared},
			conditions:    []metav1.Condition{*token.Ready("c1", "other", "u1")},
			missing: "condition TokenInfrastructureReady of the hub does not name the UID of ServiceAccount " +
				`c1/hello-agent: it says "ServiceAccount c1/other-agent (UID: u1) is ready"`,
		},
		"two entries are one credential": {
			registrations: []addonv1beta1.RegistrationConfig{declared, declared},
			conditions:    []metav1.Condition{ready}, uid: "u1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := decide(withTokens(tc.registrations, tc.conditions...))
			require.Len(t, p.serve, 1)
			assert.Equal(t, "ns/hello-hub-kubeconfig", p.serve[0].secret.String())
			assert.Equal(t, &account{user: helloAccount, uid: tc.uid, missing: tc.missing}, p.serve[0].account)
			assert.Equal(t, tc.declare, p.declare == token.Driver)
			assert.False(t, p.waits)
			assert.Empty(t, p.refused)
		})
	}
}

func TestCustomSignersAndBadNamesWithTokens(t *testing.T) {
	p := decide(withTokens([]addonv1beta1.RegistrationConfig{customSigner("example.com/s"), customSigner("")}))
	require.Len(t, p.serve, 1)
	assert.Nil(t, p.serve[0].account)
	assert.Equal(t, csr.ConditionRotated, p.refused[0].condition.Type)

	f := withTokens([]addonv1beta1.RegistrationConfig{hubClient("token", helloAccount)})
	for range 64 {
		f.name += "a"
	}
	p = decide(f)
	assert.Empty(t, p.serve)
	assert.Equal(t, token.ConditionRefreshed, p.refused[0].condition.Type)
	assert.Contains(t, p.refused[0].condition.Message, "Failed to create token: registrations[0]: add-on name")
}

func TestConcludeDeclaresTokensInOnePatch(t *testing.T) {
	f := withTokens([]addonv1beta1.RegistrationConfig{
		customSigner("example.com/s"), hubClient("csr", "u", "g"), {Type: addonv1beta1.KubeClient},
	})
	after := conclude(f, decide(f), nil)
	assert.Equal(t, f.addon.Status.Registrations[0], after.Status.Registrations[0])
	for _, i := range []int{1, 2} {
		assert.Equal(t, hubClient("token", helloAccount), after.Status.Registrations[i])
	}
	assert.Equal(t, "csr", f.addon.Status.Registrations[1].KubeClient.Driver, "the cached object is left alone")
}

// Shows: registration/token-judged
func TestJudgeToken(t *testing.T) {
	day := 24 * time.Hour
	reg := registration{account: &account{user: helloAccount, uid: "u1"}}
	tests := map[string]struct {
		token    []byte
		uid      types.UID
		issuedAt time.Time
		good     bool
		fits     bool
	}{
		"a token of now is good":              {token: jwt(helloAccount, "u1", noon, noon.Add(day)), uid: "u1", good: true, fits: true},
		"no token is none":                    {uid: "u1"},
		"what cannot be read is none":         {token: []byte("a.b.c"), uid: "u1"},
		"one of an earlier ServiceAccount":    {token: jwt(helloAccount, "u0", noon, noon.Add(day)), uid: "u1"},
		"one of another user":                 {token: jwt("other", "u1", noon, noon.Add(day)), uid: "u1"},
		"an expired one":                      {token: jwt(helloAccount, "u1", noon.Add(-2*day), noon.Add(-day)), uid: "u1"},
		"one before the band":                 {token: jwt(helloAccount, "u1", noon.Add(-74*time.Hour), noon.Add(26*time.Hour)), uid: "u1", good: true, fits: true},
		"one behind the band":                 {token: jwt(helloAccount, "u1", noon.Add(-80*time.Hour), noon.Add(20*time.Hour)), uid: "u1", fits: true},
		"while the hub names none, any is it": {token: jwt(helloAccount, "u0", noon, noon.Add(day)), good: true, fits: true},
		"a clock of the hub that is two days behind does not let it expire": {
			token: jwt(helloAccount, "u1", noon.Add(-2*day), noon.Add(-day)), uid: "u1", issuedAt: noon, good: true, fits: true,
		},
		"nor does one that is ahead keep it for ever": {
			token: jwt(helloAccount, "u1", noon.Add(9*day), noon.Add(10*day)), uid: "u1", issuedAt: noon.Add(-2 * day),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reg.account.uid = tc.uid
			state := judgeToken(credential{token: tc.token, issuedAt: tc.issuedAt}, addonWith(), reg)
			assert.Equal(t, tc.fits, state.verdict.Fits, state.verdict.Why)
			assert.Equal(t, tc.good, state.good(noon))
		})
	}
}

// Shows: registration/token-judged
func TestATokenIsReplacedInTheBandByOurClock(t *testing.T) {
	reg := registration{account: &account{user: helloAccount, uid: "u1"}}
	for apart := range 5 {
		hub := noon.Add(time.Duration(apart-2) * time.Hour)
		raw := jwt(helloAccount, "u1", hub, hub.Add(100*time.Hour))
		state := judgeToken(credential{token: raw, issuedAt: noon}, addonWith(), reg)
		assert.False(t, state.rotateAt.Before(noon.Add(75*time.Hour)), "%s", state.rotateAt)
		assert.False(t, state.rotateAt.After(noon.Add(80*time.Hour)), "%s", state.rotateAt)
		again := judgeToken(credential{token: raw, issuedAt: noon}, addonWith(), reg)
		assert.Equal(t, state.rotateAt, again.rotateAt, "it is not drawn again at each look")
	}
}

// Shows: registration/certificates-to-tokens
func TestAReplacedCertificateStaysUntilItExpires(t *testing.T) {
	r := &Reconciler{Server: issue.HubServer{Cluster: "hub", Server: "https://hub"}}
	reg := registration{kubeconfig: true, account: &account{}}
	for name, c := range map[string]struct {
		certificate []byte
		key         string
		stays       bool
		until       time.Time
	}{
		"valid":               {certificateUntil(t, "user", noon.Add(time.Hour)), "key", true, noon.Add(time.Hour)},
		"longer than a token": {certificateUntil(t, "user", noon.Add(48*time.Hour)), "key", true, noon.Add(24 * time.Hour)},
		"expired":             {certificateUntil(t, "user", noon), "key", false, noon.Add(24 * time.Hour)},
		"without a key":       {certificateUntil(t, "user", noon.Add(time.Hour)), "", false, noon.Add(24 * time.Hour)},
		"garbage":             {[]byte("crt"), "key", false, noon.Add(24 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			pair := issue.Pair{Certificate: c.certificate, Key: []byte(c.key), IssuedAt: noon}
			seen := &corev1.Secret{}
			pair.Put(seen)
			got, err := fill(r, reg, seen, credential{token: []byte("jwt"), issuedAt: noon})
			require.NoError(t, err)
			if c.stays {
				assert.Equal(t, c.certificate, got.Data["tls.crt"])
				assert.Equal(t, c.key, string(got.Data["tls.key"]))
			} else {
				assert.NotContains(t, got.Data, "tls.crt")
				assert.NotContains(t, got.Data, "tls.key")
			}
			s := &serving{r, addonWith(), place{side: sideAgent}, reg}
			assert.Equal(t, reconcile.DoneUntil(c.until), s.untilToken(noon.Add(24*time.Hour), got), "it goes in time")
			s.facts.ahead = 2 * time.Hour
			late, err := s.fill(seen, credential{token: []byte("jwt"), issuedAt: noon})
			require.NoError(t, err)
			assert.Equal(t, c.stays || name == "expired", late.Data["tls.crt"] != nil, "the time at the hub counts")
		})
	}
}

func TestFillChangesTheDriverInOneWrite(t *testing.T) {
	r := &Reconciler{Server: issue.HubServer{Cluster: "hub", Server: "https://hub"}}
	pair := issue.Pair{Certificate: certificateUntil(t, "user", noon.Add(2*time.Hour)), Key: []byte("key"), IssuedAt: noon}
	byCSR, byToken := registration{kubeconfig: true}, registration{kubeconfig: true, account: &account{}}
	first, err := fill(r, byCSR, &corev1.Secret{Data: map[string][]byte{"theirs": []byte("x")}},
		credential{pair: pair})
	require.NoError(t, err)
	second, err := fill(r, byToken, first, credential{token: []byte("jwt"), issuedAt: noon.Add(time.Hour)})
	require.NoError(t, err)
	assert.Equal(t, "jwt", string(second.Data["token"]))
	assert.Equal(t, pair.Certificate, second.Data["tls.crt"], "agents that run have it in use")
	assert.Equal(t, "key", string(second.Data["tls.key"]))
	assert.True(t, r.Server.DescribesToken(second.Data["kubeconfig"]))
	assert.True(t, noon.Add(time.Hour).Equal(tokenOf(second).issuedAt))
	assert.Equal(t, "x", string(second.Data["theirs"]))
	again, err := fill(r, byToken, second, tokenOf(second))
	require.NoError(t, err)
	assert.Equal(t, second, again, "filled once, nothing is left to write")
	third, err := fill(r, byCSR, second, credential{pair: pair})
	require.NoError(t, err)
	assert.NotContains(t, third.Data, "token")
	assert.True(t, r.Server.Describes(third.Data["kubeconfig"]))

	// The key "token" in the Secret of a custom signer is another client's.
	own, err := fill(r, registration{}, &corev1.Secret{Data: map[string][]byte{"token": []byte("x")}},
		credential{pair: pair})
	require.NoError(t, err)
	assert.Contains(t, own.Data, "token")
}

func TestConditionsOfBothDrivers(t *testing.T) {
	good := result{kind: csr.ConditionRotated, served: true, condition: issue.Rotated(issue.PairVerdict{})}
	bad := result{kind: token.ConditionRefreshed, condition: token.CreationFailed("no")}
	fresh := result{kind: token.ConditionRefreshed, served: true, condition: token.Refreshed(noon)}
	both := []metav1.Condition{
		{Type: csr.ConditionRotated, Status: "True", Reason: "Old"}, {Type: token.ConditionRefreshed, Status: "True", Reason: "Old"},
	}
	reasons := func(p plan, results ...result) map[string]string {
		f := addonWith()
		f.addon.Status.Conditions = both
		found := map[string]string{}
		for _, c := range conclude(f, p, results).Status.Conditions {
			found[c.Type] = c.Reason
		}
		return found
	}
	tests := map[string]struct {
		plan    plan
		results []result
		want    map[string]string
	}{
		"each tells of its own": {
			plan{remove: removeStale}, []result{good, bad},
			map[string]string{csr.ConditionRotated: issue.ReasonUpdated, token.ConditionRefreshed: token.ReasonCreationFailed},
		},
		"that of the other driver goes when its successor is there": {
			plan{remove: removeStale}, []result{fresh}, map[string]string{token.ConditionRefreshed: token.ReasonRefreshed},
		},
		"and not before": {
			plan{remove: removeStale}, []result{bad},
			map[string]string{csr.ConditionRotated: "Old", token.ConditionRefreshed: token.ReasonCreationFailed},
		},
		"nor while the hub must move": {
			plan{remove: removeStale, waits: true}, nil, map[string]string{csr.ConditionRotated: "Old", token.ConditionRefreshed: "Old"},
		},
		"nor while the add-on is being deleted": {
			plan{remove: removeNone}, []result{good},
			map[string]string{csr.ConditionRotated: issue.ReasonUpdated, token.ConditionRefreshed: "Old"},
		},
		"without registrations both go": {plan{remove: removeAll}, nil, map[string]string{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, reasons(tc.plan, tc.results...)) })
	}
}

func TestCompleteDriver(t *testing.T) {
	r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(noon)}
	require.NoError(t, r.completeDriver())
	assert.Equal(t, DriverCSR, r.Driver)
	assert.Equal(t, token.DefaultExpirationSeconds, r.TokenExpirationSeconds)
	require.ErrorContains(t, (&Reconciler{Driver: "awsirsa"}).completeDriver(), `driver "awsirsa" is unknown: it must be csr or token`)
	require.ErrorContains(t, (&Reconciler{Driver: "token", TokenExpirationSeconds: 599}).completeDriver(),
		"tokens for 599 seconds cannot be requested: the minimum is 600")
}

// stubCluster is a cluster of one client.
type stubCluster struct {
	cluster.Cluster
	client client.Client
}

func (s stubCluster) GetClient() client.Client    { return s.client }
func (s stubCluster) GetAPIReader() client.Reader { return s.client }

// Shows: registration/token-asked-once
func TestATokenThatCannotBeStoredIsKeptForTheNextTry(t *testing.T) {
	asked, full := 0, true
	hub := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		SubResourceCreate: func(
			_ context.Context, _ client.Client, _ string, _, sub client.Object, _ ...client.SubResourceCreateOption,
		) error {
			asked++
			request, ok := sub.(*authenticationv1.TokenRequest)
			require.True(t, ok)
			request.Status.Token = string(jwt(helloAccount, "u1", noon, noon.Add(24*time.Hour)))
			return nil
		},
	})
	agent := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if full {
				return errors.New("exceeded quota")
			}
			return c.Create(ctx, object, options...)
		},
	})
	r := &Reconciler{
		Hub: stubCluster{client: hub}, Cluster: "c1", sides: map[side]cluster.Cluster{sideAgent: stubCluster{client: agent}},
		watch: &watcher{}, Clock: clocktesting.NewFakePassiveClock(noon),
		Ahead: func() (time.Duration, bool) { return 0, false },
	}
	f, p := addonWith(), place{side: sideAgent, namespace: "ns"}
	reg := registration{secret: types.NamespacedName{Namespace: "ns", Name: "hello-kubeconfig"}, account: &account{user: helloAccount, uid: "u1"}}
	for range 5 {
		assert.False(t, (&serving{r, f, p, reg}).refresh(t.Context(), tokenState{}, newResult(reg)).served)
	}
	assert.Equal(t, 1, asked, "a token is valid for a year, and nobody can take it back")
	full = false
	assert.True(t, (&serving{r, f, p, reg}).refresh(t.Context(), tokenState{}, newResult(reg)).served)
	assert.Equal(t, 1, asked)
	(&serving{r, f, p, reg}).refresh(t.Context(), tokenState{}, newResult(reg))
	assert.Equal(t, 2, asked, "a stored one is not used again")
}

// issuing is a hub whose tokens are valid for a day by its clock.
func issuing(t *testing.T, now *time.Time) client.Client {
	t.Helper()
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		SubResourceCreate: func(
			_ context.Context, _ client.Client, _ string, _, sub client.Object, _ ...client.SubResourceCreateOption,
		) error {
			request, ok := sub.(*authenticationv1.TokenRequest)
			require.True(t, ok)
			request.Status.Token = string(jwt(helloAccount, "u1", *now, now.Add(24*time.Hour)))
			return nil
		},
	})
}

// A node without a battery starts with a wrong clock, gets a token, and its clock is set right later.
//
// Shows: registration/token-judged
func TestATokenIsReplacedInTimeAlsoWhenOurClockIsSetRight(t *testing.T) {
	reg := registration{account: &account{user: helloAccount, uid: "u1"}}
	for sentence, tc := range map[string]struct {
		wrong  time.Duration // by how much our clock was ahead when the token came
		silent bool          // whether the hub does not say what its time is
	}{
		"it was three days ahead":                                     {wrong: 72 * time.Hour},
		"it was three days behind":                                    {wrong: -72 * time.Hour},
		"it was an hour ahead":                                        {wrong: time.Hour},
		"it was three days ahead, and the hub does not say its time":  {wrong: 72 * time.Hour, silent: true},
		"it was three days behind, and the hub does not say its time": {wrong: -72 * time.Hour, silent: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			hub := noon
			r := &Reconciler{Hub: stubCluster{client: issuing(t, &hub)}, Cluster: "c1"}
			at := func(wrong time.Duration) facts {
				f := addonWith()
				if f.now = hub.Add(wrong); !tc.silent {
					f.ahead, f.hubKnown = wrong, true
				}
				return f
			}
			fresh, err := (&serving{Reconciler: r, facts: at(tc.wrong)}).requestToken(t.Context())
			require.NoError(t, err)
			state := judgeToken(fresh, at(tc.wrong), reg)
			require.True(t, state.good(at(tc.wrong).now), "%+v", state)
			due := 18.5
			if tc.silent && tc.wrong > 0 {
				due = 6 // Our clock may be set right, and nobody would tell.
			}
			assert.InDelta(t, due, state.rotateAt.Sub(at(tc.wrong).now).Hours(), 0.8, "by our clock, while that is wrong")

			hub = noon.Add(12 * time.Hour)
			if state = judgeToken(fresh, at(0), reg); !tc.silent || tc.wrong > 0 {
				require.True(t, state.good(at(0).now), "%+v", state)
				assert.InDelta(t, 18.5, state.rotateAt.Sub(noon).Hours(), 0.8, "by the right one")
			}
			fresh.issuedAt = state.issuedAt
			hub = noon.Add(20 * time.Hour)
			state = judgeToken(fresh, at(0), reg)
			assert.False(t, state.good(at(0).now), "%+v", state)
			hub = noon.Add(75 * time.Hour)
			state = judgeToken(fresh, at(0), reg)
			assert.False(t, state.verdict.Fits, "it expired")
		})
	}
}

// The clock is set right when the recorded time is not in the future any more, and the hub does not say its time.
//
// Shows: registration/token-judged
func TestATokenIsReplacedInTimeWhenOurClockIsSetRightLater(t *testing.T) {
	reg := registration{account: &account{user: helloAccount, uid: "u1"}}
	for _, wrong := range []time.Duration{2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 16 * time.Hour} {
		hub := noon
		r := &Reconciler{Hub: stubCluster{client: issuing(t, &hub)}, Cluster: "c1"}
		f := addonWith()
		f.now = hub.Add(wrong)
		fresh, err := (&serving{Reconciler: r, facts: f}).requestToken(t.Context())
		require.NoError(t, err)
		f.now = noon.Add(wrong + time.Hour)
		state := judgeToken(fresh, f, reg)
		assert.True(t, state.good(f.now), "%s: %+v", wrong, state.verdict)
		fresh.issuedAt = state.issuedAt
		f.now = noon.Add(24*time.Hour - time.Minute)
		state = judgeToken(fresh, f, reg)
		assert.False(t, state.good(f.now), "%s: it expires in a minute, by a clock that is right: %+v", wrong, state.verdict)
	}
}

// What is recorded may be of a version that recorded the time of a wrong clock, or of a user who edited it. It counts
// for nothing once the time at the hub is known.
//
// Shows: registration/token-judged
func TestWhatIsRecordedOfATokenCountsForNothingWhereTheTimeAtTheHubIsKnown(t *testing.T) {
	reg := registration{account: &account{user: helloAccount, uid: "u1"}}
	raw := jwt(helloAccount, "u1", noon, noon.Add(24*time.Hour))
	for sentence, recorded := range map[string]time.Time{
		"by a clock eight hours ahead":  noon.Add(8 * time.Hour),
		"by a clock eight hours behind": noon.Add(-8 * time.Hour),
		"a moment ago":                  noon.Add(19 * time.Hour),
		"in 2001":                       time.Unix(978307201, 0),
		"nothing":                       {},
	} {
		f := addonWith()
		f.hubKnown, f.ahead, f.now = true, 8*time.Hour, noon.Add(10*time.Hour+8*time.Hour)
		state := judgeToken(credential{token: raw, issuedAt: recorded}, f, reg)
		assert.True(t, state.good(f.now), sentence)
		assert.InDelta(t, 26.5, state.rotateAt.Sub(noon).Hours(), 0.8, sentence)
		assert.Equal(t, noon, state.issuedAt.UTC(), sentence)
		f.now = noon.Add(20*time.Hour + 8*time.Hour)
		assert.False(t, judgeToken(credential{token: raw, issuedAt: recorded}, f, reg).good(f.now), sentence)
	}
}

// The clock of the hub was a day ahead when the token came, and the hub refuses the token until then.
//
// Shows: registration/token-judged
func TestATokenThatIsNotValidYetIsReplaced(t *testing.T) {
	reg := registration{account: &account{user: helloAccount, uid: "u1"}}
	raw := jwt(helloAccount, "u1", noon.Add(24*time.Hour), noon.Add(48*time.Hour))
	f := addonWith()
	f.now = noon.Add(time.Minute)
	assert.True(t, judgeToken(credential{token: raw, issuedAt: noon}, f, reg).verdict.Fits, "the hub says no time")
	f.hubKnown = true
	state := judgeToken(credential{token: raw, issuedAt: noon}, f, reg)
	assert.False(t, state.verdict.Fits)
	assert.Contains(t, state.verdict.Why, "the token is not valid before 2026-11-21T12:00:00Z")
	f.now = noon.Add(24*time.Hour - 30*time.Second)
	assert.True(t, judgeToken(credential{token: raw, issuedAt: noon}, f, reg).verdict.Fits, "API servers accept it by now")
}
