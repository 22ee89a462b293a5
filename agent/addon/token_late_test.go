package addon

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
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
)

// Our clock and that of the hub agree. The hub has too much to do: it refuses the request for a token with 429 and
// Retry-After, which client-go repeats up to ten times within the same call, and answers after 90 seconds.
//
// Shows: registration/token-judged
func TestATokenThatCameLateIsStored(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	asked := 0
	hub := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		SubResourceCreate: func(
			_ context.Context, _ client.Client, _ string, _, sub client.Object, _ ...client.SubResourceCreateOption,
		) error {
			asked++
			clock.Step(90 * time.Second)
			request, ok := sub.(*authenticationv1.TokenRequest)
			require.True(t, ok)
			request.Status.Token = string(jwt(helloAccount, "u1", clock.Now(), clock.Now().Add(24*time.Hour)))
			return nil
		},
	})
	r := &Reconciler{
		Hub: stubCluster{client: hub}, Cluster: "c1", watch: &watcher{}, Clock: clock,
		sides: map[side]cluster.Cluster{sideAgent: stubCluster{client: fake.NewClientBuilder().Build()}},
		Ahead: func() (time.Duration, bool) { return 0, true },
	}
	p := place{side: sideAgent, namespace: "ns"}
	reg := registration{secret: types.NamespacedName{Namespace: "ns", Name: "hello-kubeconfig"}, account: &account{user: helloAccount, uid: "u1"}}
	served := false
	for range 5 {
		f := addonWith()
		f.now, f.hubKnown = r.Clock.Now(), true // as a pass begins, see observe
		res := (&serving{r, f, p, reg}).refresh(t.Context(), tokenState{}, newResult(reg))
		if served = res.served; served {
			break
		}
		t.Logf("%+v", res.condition)
	}
	assert.True(t, served, "the add-on has no credential after %d tokens, each valid for a day (by default a year)", asked)
	assert.Equal(t, 1, asked, "nobody can take a token back")
}

// A hub has two API servers behind a balancer, whose clocks are two minutes apart. The last answer before a pass is of
// the one that is behind, e.g. that which keeps the watches and leases; tokens come from the other one.
//
// Shows: registration/token-judged
func TestATokenOfAnAPIServerWhoseClockIsAheadIsStored(t *testing.T) {
	hub := noon.Add(2 * time.Minute)
	asked := 0
	issue, clock := issuing(t, &hub), clocktesting.NewFakeClock(noon)
	counting := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		SubResourceCreate: func(
			ctx context.Context, _ client.Client, name string, o, sub client.Object, options ...client.SubResourceCreateOption,
		) error {
			asked++
			return issue.SubResource(name).Create(ctx, o, sub, options...)
		},
	})
	r := &Reconciler{
		Hub: stubCluster{client: counting}, Cluster: "c1", watch: &watcher{}, Clock: clock,
		Ahead: func() (time.Duration, bool) { return 0, true },
		sides: map[side]cluster.Cluster{sideAgent: stubCluster{client: fake.NewClientBuilder().Build()}},
	}
	f, p := addonWith(), place{side: sideAgent, namespace: "ns"}
	f.now, f.hubKnown = noon, true
	reg := registration{secret: types.NamespacedName{Namespace: "ns", Name: "hello-kubeconfig"}, account: &account{user: helloAccount, uid: "u1"}}
	served := false
	for i := range 10 { // a backoff that is done in three minutes
		f.now = noon.Add(time.Duration(i) * 18 * time.Second)
		clock.SetTime(f.now)
		hub = f.now.Add(2 * time.Minute)
		if served = (&serving{r, f, p, reg}).refresh(t.Context(), tokenState{}, newResult(reg)).served; served {
			break
		}
	}
	require.True(t, served, "no credential after %d tokens, which nobody can take back", asked)
}

// The clock of a node without a battery is set right while the agent runs: until the next answer of the hub, the agent
// thinks that the hub is ten days ahead, too, where the token expired long ago.
//
// Shows: registration/token-judged
func TestNoTokenIsReplacedByATimeThatOnlyAClockSays(t *testing.T) {
	for sentence, tc := range map[string]struct {
		hubDown bool
		asked   int
		passes  time.Duration // at the hub
	}{
		"the hub says its time":                         {asked: 1},
		"the hub does not answer":                       {hubDown: true, asked: 1},
		"the hub says its time, and the token is due":   {asked: 2, passes: 20 * time.Hour},
		"the token is due, and the hub does not answer": {hubDown: true, asked: 1, passes: 20 * time.Hour},
	} {
		t.Run(sentence, func(t *testing.T) {
			clock, at, ahead, asked, down := clocktesting.NewFakeClock(noon), noon, time.Duration(0), 0, false
			answers := func() error {
				if down {
					return errors.New("connection refused")
				}
				ahead = clock.Now().Sub(at)
				return nil
			}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
			issue, scheme := issuing(t, &at), runtime.NewScheme()
			require.NoError(t, addonv1alpha1.Install(scheme))
			hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if err := answers(); err != nil {
						return err
					}
					return c.Get(ctx, key, o, options...)
				},
				SubResourceCreate: func(
					ctx context.Context, _ client.Client, name string, o, sub client.Object, options ...client.SubResourceCreateOption,
				) error {
					asked++
					return errors.Join(answers(), issue.SubResource(name).Create(ctx, o, sub, options...))
				},
			})
			r := &Reconciler{
				Hub: stubCluster{client: hub}, Cluster: "c1", watch: &watcher{}, Clock: clock, Namespace: "agent", SecretName: "agent",
				Ahead: func() (time.Duration, bool) { return ahead, true },
				sides: map[side]cluster.Cluster{sideAgent: stubCluster{client: fake.NewClientBuilder().WithObjects(namespace).Build()}},
			}
			p := place{side: sideAgent, namespace: "ns"}
			reg := registration{
				secret:  types.NamespacedName{Namespace: "ns", Name: "hello-kubeconfig"},
				account: &account{user: helloAccount, uid: "u1"},
			}
			pass := func() result {
				f := addonWith()
				f.agent = "agent/agent"
				r.readClocks(&f)
				return (&serving{r, f, p, reg}).serveToken(t.Context())
			}
			first := pass()
			require.True(t, first.served, "%+v", first)
			require.Equal(t, 1, asked)

			down, at = tc.hubDown, at.Add(tc.passes)
			clock.Step(240 * time.Hour)
			res := pass()
			assert.Equal(t, tc.asked, asked, "a token that is good was thrown away")
			assert.Equal(t, !tc.hubDown, res.served, "%+v", res)
			down = false
			assert.True(t, pass().served)
		})
	}
}
