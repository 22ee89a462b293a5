package issue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/csr"
)

var errCrash = errors.New("the agent crashed")

// world is an API server, a cache of it that may lag, and an agent that may crash at any write.
type world struct {
	t   *testing.T
	ca  *signer
	api client.WithWatch
	// pendings and credentials are two caches of Secrets, because the two kinds may be on different clusters.
	pendings, credentials client.Reader
	now                   time.Time
	// ahead is by how much the clock of the agent is ahead of that of the hub, without its knowledge.
	ahead time.Duration
	// crashAt is the number of the write at which the agent crashes; late lets the write happen before.
	crashAt, writes int
	late            bool
	created         []string
	// secret is the Secret of the agent's own credential; empty for the usual one.
	secret string
	// user is the agent on the hub; empty while it uses a bootstrap credential.
	user string
	// paged lets the API server answer lists of requests in pages; reads counts them.
	paged bool
	reads int
}

// page cuts a list of requests to a page, as an API server does.
func (w *world) page(list client.ObjectList, opts []client.ListOption) {
	requests, ok := list.(*certificatesv1.CertificateSigningRequestList)
	if !ok || !w.paged {
		return
	}
	w.reads++
	var o client.ListOptions
	o.ApplyOptions(opts)
	from, _ := strconv.Atoi(o.Continue)
	requests.Items = requests.Items[min(from, len(requests.Items)):]
	if o.Limit > 0 && int64(len(requests.Items)) > o.Limit {
		requests.Items, requests.Continue = requests.Items[:o.Limit], strconv.FormatInt(int64(from)+o.Limit, 10)
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ca: newSigner(t), now: noon}
	mapper := meta.NewDefaultRESTMapper(nil) // the usual one knows all kinds, which takes time
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), meta.RESTScopeRoot)
	w.api = interceptor.NewClient(fake.NewClientBuilder().WithRESTMapper(mapper).
		WithStatusSubresource(&certificatesv1.CertificateSigningRequest{}).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return w.write(func() error {
				o.SetUID(uuid.NewUUID())
				if request, ok := o.(*certificatesv1.CertificateSigningRequest); ok && request.Spec.Username == "" {
					request.Spec.Username, request.CreationTimestamp = w.user, metav1.NewTime(w.now)
				}
				err := c.Create(ctx, o, opts...)
				if _, ok := o.(*certificatesv1.CertificateSigningRequest); ok && err == nil {
					w.created = append(w.created, o.GetName())
				}
				return err
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return w.write(func() error { return c.Update(ctx, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			w.page(list, opts)
			return err
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.write(func() error { return c.Delete(ctx, o, opts...) })
		},
	})
	w.refresh()
	return w
}

func (w *world) write(do func() error) error {
	w.writes++
	if w.writes != w.crashAt {
		return do()
	}
	if w.late {
		if err := do(); err != nil {
			return err
		}
	}
	return errCrash
}

// refresh lets both caches catch up.
func (w *world) refresh() {
	w.pendings = w.snapshot()
	w.credentials = w.pendings
}

func (w *world) snapshot() client.Reader {
	var now snapshot
	require.NoError(w.t, w.api.List(w.t.Context(), &now.secrets))
	require.NoError(w.t, w.api.List(w.t.Context(), &now.requests))
	return now
}

// snapshot holds what an API server held at an instant.
type snapshot struct {
	secrets  corev1.SecretList
	requests certificatesv1.CertificateSigningRequestList
}

func (s snapshot) Get(_ context.Context, key types.NamespacedName, o client.Object, _ ...client.GetOption) error {
	switch out := o.(type) {
	case *corev1.Secret:
		for _, secret := range s.secrets.Items {
			if client.ObjectKeyFromObject(&secret) == key {
				secret.DeepCopyInto(out)
				return nil
			}
		}
	case *certificatesv1.CertificateSigningRequest:
		for _, request := range s.requests.Items {
			if request.Name == key.Name {
				request.DeepCopyInto(out)
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List returns all requests; there is one owner only.
func (s snapshot) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if out, ok := list.(*certificatesv1.CertificateSigningRequestList); ok {
		s.requests.DeepCopyInto(out)
	}
	return nil
}

// cached reads from the cache and writes to the API server.
type cached struct {
	client.Client
	world *world
}

func (c cached) Get(ctx context.Context, key types.NamespacedName, o client.Object, opts ...client.GetOption) error {
	if key == credentialKey {
		return c.world.credentials.Get(ctx, key, o, opts...)
	}
	return c.world.pendings.Get(ctx, key, o, opts...)
}

func (c cached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.world.pendings.List(ctx, list, opts...)
}

var (
	credentialKey = types.NamespacedName{Namespace: "agent", Name: "credential"}
	wanted        = csr.ForCluster("c1", "a1")
)

// pass is one pass of an agent that stores its credential in one Secret.
func (w *world) pass() (Answer, error) {
	ctx := w.t.Context()
	c := cached{Client: w.api, world: w}
	issuer := Issuer{
		Hub: c, HubLive: w.api, Agent: c, AgentLive: w.api, Namespace: "agent", Secret: w.secret, HubName: "hub",
		User: w.user,
	}
	var seen *corev1.Secret
	answer, err := issuer.Ask(ctx, Task{
		Now: w.now.Add(w.ahead), Want: wanted,
		Load: func(ctx context.Context, live bool) (Pair, bool, error) {
			reader := client.Reader(c)
			if live {
				reader = w.api
			}
			var secret corev1.Secret
			if err := reader.Get(ctx, credentialKey, &secret); err != nil {
				seen = nil
				return Pair{}, false, client.IgnoreNotFound(err)
			}
			seen = &secret
			return PairOf(&secret), false, nil
		},
	})
	if err != nil || answer.Step != StepTake {
		return answer, err
	}
	if seen == nil {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: "credential"}}
		answer.Pair.Put(secret)
		err = w.api.Create(ctx, secret)
	} else {
		answer.Pair.Put(seen)
		err = w.api.Update(ctx, seen)
	}
	if err != nil {
		return answer, err
	}
	return answer, issuer.Finish(ctx, answer)
}

// approve lets the hub issue every request that is there, valid for an hour.
func (w *world) approve() {
	for _, request := range w.requests() {
		if len(request.Status.Certificate) > 0 {
			continue
		}
		request.Status.Certificate = w.ca.sign(w.t, request.Spec.Request, w.now, w.now.Add(time.Hour), nil)
		require.NoError(w.t, w.api.Status().Update(w.t.Context(), &request))
	}
}

func (w *world) requests() []certificatesv1.CertificateSigningRequest {
	var list certificatesv1.CertificateSigningRequestList
	require.NoError(w.t, w.api.List(w.t.Context(), &list))
	return list.Items
}

func (w *world) pendingSecret() *corev1.Secret {
	var secret corev1.Secret
	err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: "agent", Name: PendingName(wanted, w.secret)}, &secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w.t, err)
	return &secret
}

func (w *world) stored() Pair {
	var secret corev1.Secret
	require.NoError(w.t, w.api.Get(w.t.Context(), credentialKey, &secret))
	return PairOf(&secret)
}

// TestACrashAtAnyWriteLeadsToTheSameOneRequest lets an agent crash at each of its writes, before and after the write
// took effect, with a cache that lags at random, through a first certificate and one rotation.
func TestACrashAtAnyWriteLeadsToTheSameOneRequest(t *testing.T) {
	for crashAt := range 13 {
		for _, late := range []bool{false, true} {
			for seed := range uint64(2) {
				t.Run(fmt.Sprintf("write %d, late %t, seed %d", crashAt, late, seed), func(t *testing.T) {
					w := newWorld(t)
					w.crashAt, w.late = crashAt, late
					random := rand.New(rand.NewPCG(seed, uint64(crashAt)))
					for round := 1; round <= 2; round++ {
						for range 6 {
							w.passAndMaybeRefresh(random)
						}
						require.Len(t, w.created, round, "one request for each certificate")
						w.approve()
						for range 6 {
							w.passAndMaybeRefresh(random)
						}
						for range 4 {
							w.refresh()
							_, _ = w.pass() // one of them may crash
						}
						w.refresh()
						before := w.writes
						answer, err := w.pass()
						require.NoError(t, err)
						assert.Equal(t, StepNone, answer.Step)
						assert.Equal(t, before, w.writes, "at rest nothing is written")
						require.Len(t, w.created, round)
						assert.Nil(t, w.pendingSecret())
						assert.True(t, JudgePair(w.stored(), wanted, w.now).Fits)
						w.now = JudgePair(w.stored(), wanted, w.now).RotateAt
					}
				})
			}
		}
	}
}

// passAndMaybeRefresh does one pass; what a pass may return besides success is a crash or a lost race.
func (w *world) passAndMaybeRefresh(random *rand.Rand) {
	_, err := w.pass()
	if err != nil && !errors.Is(err, errCrash) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		w.t.Fatalf("unexpected: %v", err)
	}
	if random.IntN(3) > 0 {
		w.pendings = w.snapshot()
	}
	if random.IntN(3) > 0 {
		w.credentials = w.snapshot()
	}
}

// Shows: registration/denied-told-at-once
func TestADeniedRequestIsNotAnsweredByABusyLoop(t *testing.T) {
	w := newWorld(t)
	_, err := w.pass()
	require.NoError(t, err)
	deny := func() {
		for _, request := range w.requests() {
			if len(request.Status.Conditions) > 0 {
				continue
			}
			request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
				Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "No",
				LastUpdateTime: metav1.NewTime(w.now),
			}}
			require.NoError(t, w.api.Status().Update(t.Context(), &request))
		}
	}
	for attempt := range 5 {
		deny()
		for range 5 {
			w.refresh()
			answer, err := w.pass()
			require.NoError(t, err)
			require.Equal(t, StepWait, answer.Step)
			assert.Contains(t, answer.Condition.Message, "was denied: No; a new csr is made at")
			assert.True(t, answer.Wake.Equal(w.now.Add(time.Minute<<attempt)), "attempt %d wakes at %s", attempt, answer.Wake)
		}
		require.Len(t, w.created, attempt+1)
		w.now = w.now.Add(time.Minute << attempt)
		answer, err := w.pass()
		require.NoError(t, err)
		require.Equal(t, StepStart, answer.Step)
	}
}

func TestAWatchThatHangsCostsNoCertificate(t *testing.T) {
	w := newWorld(t)
	_, err := w.pass()
	require.NoError(t, err)
	w.approve()
	w.refresh()
	_, err = w.pass()
	require.NoError(t, err)
	first := w.stored()

	w.now = w.now.Add(50 * time.Minute)
	w.refresh()
	answer, err := w.pass()
	require.NoError(t, err)
	require.Equal(t, StepStart, answer.Step, "after 50 of 60 minutes")
	w.refresh()
	answer, err = w.pass()
	require.NoError(t, err)
	assert.Equal(t, StepWait, answer.Step)
	assert.True(t, answer.Urgent)
	assert.Equal(t, w.now.Add(waitTimeout), answer.Wake, "when the wait has to be told")
	w.now = answer.Wake
	answer, err = w.pass()
	require.NoError(t, err)
	require.Equal(t, StepWait, answer.Step)
	assert.True(t, answer.Urgent)
	assert.Equal(t, ReasonRequestPending, answer.Condition.Reason)
	assert.Equal(t, w.now.Add(73750*time.Millisecond), answer.Wake, "an eighth of the 590 seconds that are left")
	w.approve() // and no cache hears of it
	w.now = answer.Wake
	answer, err = w.pass()
	require.NoError(t, err)
	assert.Equal(t, StepTake, answer.Step)
	assert.NotEqual(t, first.Certificate, w.stored().Certificate)
}

func TestWhatFailsWhileTheCertificateRunsOutIsTriedAgainSoon(t *testing.T) {
	w := newWorld(t)
	_, err := w.pass()
	require.NoError(t, err)
	w.approve()
	w.refresh()
	_, err = w.pass()
	require.NoError(t, err)
	w.refresh()
	for _, tc := range []struct{ at, pause time.Duration }{
		{52 * time.Minute, time.Minute}, {58 * time.Minute, 15 * time.Second}, {60*time.Minute - time.Second, time.Second},
	} {
		w.now = noon.Add(tc.at)
		w.crashAt, w.writes = 1, 0
		answer, err := w.pass()
		require.ErrorIs(t, err, errCrash)
		assert.True(t, answer.Urgent)
		assert.Equal(t, w.now.Add(tc.pause), answer.Wake)
	}
	w.now = noon.Add(time.Hour + time.Second)
	w.crashAt, w.writes = 1, 0
	answer, err := w.pass()
	require.ErrorIs(t, err, errCrash)
	assert.False(t, answer.Urgent, "there is nothing to lose any more")
}

func TestAVanishedRequestIsReplacedAndTheReasonKept(t *testing.T) {
	w := newWorld(t)
	_, err := w.pass()
	require.NoError(t, err)
	request := w.requests()[0]
	require.NoError(t, w.api.Delete(t.Context(), &request))
	w.refresh()
	answer, err := w.pass()
	require.NoError(t, err)
	want := fmt.Sprintf(
		"Failed to rotated client certificate unable to get csr %q. It might have already been deleted", request.Name)
	assert.Equal(t, want, answer.Condition.Message)
	w.refresh()
	answer, err = w.pass()
	require.NoError(t, err)
	assert.Equal(t, StepWait, answer.Step)
	assert.Equal(t, want, answer.Condition.Message, "also when the status could not be written before")
	assert.Len(t, w.created, 2)
}

func TestACertificateThatCannotBeStoredOutlivesItsRequest(t *testing.T) {
	w := newWorld(t)
	_, err := w.pass()
	require.NoError(t, err)
	w.approve()
	w.refresh()
	c := cached{Client: w.api, world: w}
	issuer := Issuer{Hub: c, HubLive: w.api, Agent: c, AgentLive: w.api, Namespace: "agent", HubName: "hub"}
	task := Task{Now: w.now, Want: wanted, Load: func(context.Context, bool) (Pair, bool, error) {
		return Pair{}, false, nil
	}}
	answer, err := issuer.Ask(t.Context(), task)
	require.NoError(t, err)
	require.Equal(t, StepTake, answer.Step)
	require.NoError(t, issuer.Keep(t.Context(), answer))
	require.NoError(t, w.api.Delete(t.Context(), &w.requests()[0]))
	w.refresh()
	again, err := issuer.Ask(t.Context(), task)
	require.NoError(t, err)
	assert.Equal(t, StepTake, again.Step)
	assert.Equal(t, answer.Pair, again.Pair)
	before := w.writes
	require.NoError(t, issuer.Keep(t.Context(), again))
	assert.Equal(t, before, w.writes, "kept once")
}

func TestAHubThatRefusesIsTold(t *testing.T) {
	w := newWorld(t)
	forbidden := apierrors.NewForbidden(certificatesv1.Resource("certificatesigningrequests"), "", errors.New("no"))
	hub := interceptor.NewClient(w.api, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return forbidden },
	})
	issuer := Issuer{Hub: hub, HubLive: w.api, Agent: w.api, AgentLive: w.api, Namespace: "agent", HubName: "hub"}
	answer, err := issuer.Ask(t.Context(), Task{
		Now: w.now.Add(w.ahead), Want: wanted,
		Load: func(context.Context, bool) (Pair, bool, error) { return Pair{}, false, nil },
	})
	require.ErrorIs(t, err, forbidden)
	assert.Contains(t, answer.Condition.Message, "Failed to create CSR ")
	require.NotNil(t, w.pendingSecret(), "the key is there for the next try")
	key := readPending(w.pendingSecret()).key
	_, err = w.pass()
	require.NoError(t, err)
	w.refresh()
	assert.Equal(t, key, readPending(w.pendingSecret()).key)
	assert.Len(t, w.created, 1)
}
