package addon

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/csr/issue"
)

// forgery is an add-on with a token whose Secret a workload of the cluster may write.
type forgery struct {
	clock   *clocktesting.FakeClock
	asked   int
	agent   client.Client
	r       *Reconciler
	reg     registration
	seconds int64
}

func newForgery(t *testing.T) *forgery {
	t.Helper()
	f := &forgery{clock: clocktesting.NewFakeClock(noon)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	f.agent = fake.NewClientBuilder().WithObjects(namespace).Build()
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		SubResourceCreate: func(
			ctx context.Context, _ client.Client, name string, o, sub client.Object, options ...client.SubResourceCreateOption,
		) error {
			f.asked++
			now := f.clock.Now()
			return issuing(t, &now).SubResource(name).Create(ctx, o, sub, options...)
		},
	})
	f.r = &Reconciler{
		Hub: stubCluster{client: hub}, Cluster: "c1", watch: &watcher{}, Clock: f.clock, Namespace: "agent", SecretName: "agent",
		Ahead: func() (time.Duration, bool) { return 0, true },
		sides: map[side]cluster.Cluster{sideAgent: stubCluster{client: f.agent}},
	}
	f.reg = registration{
		secret:  types.NamespacedName{Namespace: "ns", Name: "hello-kubeconfig"},
		account: &account{user: helloAccount, uid: "u1"},
	}
	return f
}

// pass is one pass of the agent.
func (f *forgery) pass(t *testing.T) result {
	t.Helper()
	facts := addonWith()
	facts.agent, facts.tokenSeconds = "agent/agent", f.seconds
	f.r.readClocks(&facts)
	return (&serving{f.r, facts, place{side: sideAgent, namespace: "ns"}, f.reg}).serveToken(t.Context())
}

// put replaces the token in the Secret; nil deletes the Secret.
func (f *forgery) put(t *testing.T, jwt []byte) {
	t.Helper()
	var secret corev1.Secret
	require.NoError(t, client.IgnoreNotFound(f.agent.Get(t.Context(), f.reg.secret, &secret)))
	if secret.Name == "" {
		return
	}
	if jwt == nil {
		require.NoError(t, f.agent.Delete(t.Context(), &secret))
		return
	}
	secret.Data["token"] = jwt
	require.NoError(t, f.agent.Update(t.Context(), &secret))
}

// Shows: security/forged-tokens
func TestForgedTokensDoNotMakeTheHubIssueTokensWithoutAnEnd(t *testing.T) {
	for sentence, jwt := range map[string][]byte{
		"it expired":            jwt(helloAccount, "u1", noon.Add(-2*time.Hour), noon.Add(-time.Hour)),
		"it is not valid yet":   jwt(helloAccount, "u1", noon.Add(24*time.Hour), noon.Add(48*time.Hour)),
		"it is of another user": jwt("other", "u1", noon, noon.Add(time.Hour)),
		"it fits, and is due":   jwt(helloAccount, "u1", noon.Add(-90*time.Hour), noon.Add(10*time.Hour)),
		"it is deleted":         nil,
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newForgery(t)
			var last result
			for range 200 {
				last = f.pass(t)
				f.put(t, jwt)
				f.clock.Step(100 * time.Millisecond)
			}
			require.Equal(t, issue.MaxRecent, f.asked, "in 20 seconds")
			assert.Contains(t, last.condition.Message, "10 tokens were issued within 1m0s, so something removes or replaces")
			assert.Equal(t, noon.Add(time.Minute), last.outcome.Wake())

			f.clock.SetTime(noon.Add(time.Minute))
			require.True(t, f.pass(t).served, "an add-on whose Secret is left alone has its token again")
			assert.Equal(t, issue.MaxRecent+1, f.asked)
			f.clock.SetTime(noon.Add(3 * time.Minute))
			f.put(t, nil)
			require.True(t, f.pass(t).served)
			times, _ := f.r.issued.Get("hello")
			assert.Len(t, times, 1, "earlier ones are forgotten")
		})
	}
}

// Shows: security/forged-tokens
func TestATokenThatIsGoodForEverIsReplaced(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for sentence, tc := range map[string]struct {
		from, to time.Time
		seconds  int64
		replaced bool
		due      time.Duration // how long after now the first share of its life is over
	}{
		"for 6000 years":                               {noon, noon.AddDate(6000, 0, 0), 0, true, 0},
		"since the epoch":                              {time.Unix(0, 0), noon.AddDate(6000, 0, 0), 0, true, 0},
		"for two years":                                {noon, noon.Add(2 * year), 0, true, 0},
		"for the year that is asked for":               {noon, noon.Add(year), 0, false, year * 3 / 4},
		"for a year, to which a hub extends":           {noon, noon.Add(year), 3600, false, 45 * time.Minute},
		"for a day, as long as was asked for":          {noon, noon.Add(24 * time.Hour), 86400, false, 18 * time.Hour},
		"for an hour, to which a hub cuts":             {noon, noon.Add(time.Hour), 86400, false, 45 * time.Minute},
		"for ten years, and so long is asked for":      {noon, noon.Add(10 * year), 10 * 365 * 86400, false, year * 30 / 4},
		"for a year, and more than a hub has is asked": {noon, noon.Add(year), 1 << 62, false, year * 3 / 4},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newForgery(t)
			f.pass(t)
			f.seconds = tc.seconds
			f.put(t, jwt(helloAccount, "u1", tc.from, tc.to))
			res := f.pass(t)
			require.True(t, res.served)
			assert.Equal(t, tc.replaced, f.asked == 2)
			if tc.due == 0 {
				return
			}
			wake := res.outcome.Wake().Sub(noon)
			assert.GreaterOrEqual(t, wake, tc.due)
			assert.LessOrEqual(t, wake, tc.due+tc.due/14)
		})
	}
}
