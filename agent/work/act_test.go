package work

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/executor"
	"github.com/spokelet/spokelet/agent/work/feedback"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/agent/work/status"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// defect panics over each request about the object bad, and creates the others.
type defect struct{}

func (defect) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := &metav1.PartialObjectMetadata{}
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(sent); err != nil {
			return nil, err
		}
	}
	if sent.Name == "bad" || strings.HasSuffix(r.URL.Path, "/bad") {
		panic("the defect")
	}
	sent.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	sent.UID, sent.ResourceVersion = "uid", "1"
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(http.StatusCreated)
	err := json.NewEncoder(answer).Encode(sent)
	return answer.Result(), err
}

// acting is a reconciler that can act on a spoke with a defect.
func acting(t *testing.T) *Reconciler {
	t.Helper()
	r := lean()
	r.store = watch.NewStore(func(watch.Owner) {}, func() {})
	r.authorizer = executor.New(executor.Options{
		Clock: clock.RealClock{}, Wake: func(string) {},
	})
	client, err := spoke.NewClient(&rest.Config{Host: "http://spoke.example"}, &http.Client{Transport: defect{}})
	require.NoError(t, err)
	r.applier = apply.Applier{Client: client, Feedback: feedback.New(false, 0)}
	r.counts, err = newCounters(nil)
	require.NoError(t, err)
	return r
}

func TestAPanicOverOneManifestLeavesItsSiblingsAlone(t *testing.T) {
	r := acting(t)
	f := workOf([]byte(configMap("a")), []byte(configMap("bad")), []byte(configMap("b")))
	f.now, f.applied = epoch, &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "applied", UID: "owner"}}
	f.manifests = readBy(t, r, f)
	r.claim(f)
	in := r.input(f)
	p := planAll(in)

	results := r.act(t.Context(), f, &p)
	require.NoError(t, results[0].Err)
	require.NoError(t, results[2].Err)
	require.ErrorContains(t, results[1].Err, "the agent failed, which is a defect of it: the defect")
	assert.True(t, results[1].Final, "it is not tried again and again")
	assert.True(t, results[1].Wake.After(epoch), "but after a while")
	assert.Equal(t, manifest.Unknown, results[1].Presence, "nothing is known of the object")

	in = r.input(f)
	in.objects[1].known.State = watch.State{
		Requested: epoch.Add(-time.Minute), Object: watch.Object{Exists: true, UID: "known"},
	}
	in.objects[1].known.Listed = true
	p = planAll(in)
	results = r.act(t.Context(), f, &p)
	require.ErrorContains(t, results[1].Err, "the defect")
	assert.Equal(t, manifest.Present, results[1].Presence, "what was known stays known")
	assert.Equal(t, "known", results[1].UID)
	assert.Equal(t, apply.Skip, planAll(r.input(f)).steps[1].Action, "the manifest that failed rests until something changes")
}

// A pass that could not publish to the hub is repeated at one instant, and by nothing that only the hub can change.
func TestASilentHubIsOneWakeUp(t *testing.T) {
	r := acting(t)
	f := workOf([]byte(configMap("a")))
	f.now = epoch
	until := epoch.Add(hubPause)
	r.notes.change(f.owner, func(n *note) { n.sent[statuses] = delivery{uid: f.work.UID, silentUntil: until} })
	before := f.work
	after := workv1.ManifestWorkStatus{Conditions: []metav1.Condition{{Type: workv1.WorkApplied}}}
	assert.Equal(t, reconcile.DoneUntil(until), r.publishStatus(t.Context(), f, after))
	assert.Same(t, before, f.work, "so that what only the new status would thaw stays frozen")
	assert.Equal(t, reconcile.Done(), r.publishStatus(t.Context(), f, f.work.Status), "a status that is there needs no hub")
}

func TestAWorkThatIsGoneLeavesNothing(t *testing.T) {
	r := acting(t)
	f := workOf([]byte(configMap("a")), []byte(`{"apiVersion":"x.example/v1","kind":"X","metadata":{"name":"x"}}`))
	f.now, f.applied = epoch, &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "applied", UID: "owner"}}
	f.manifests = readBy(t, r, f)
	r.claim(f)
	in := r.input(f)
	p := planAll(in)
	r.act(t.Context(), f, &p)
	r.notes.change(f.owner, func(n *note) { n.blocked = 3 })
	require.Equal(t, watch.Size{Works: 1, Objects: 1, Wanted: 2}, r.store.Size())

	r.forget(f)
	assert.Equal(t, watch.Size{}, r.store.Size())
	assert.Zero(t, r.notes.Len())
	registry := prometheus.NewRegistry()
	g := newGauges(registry, r.store, r.notes, nil)
	g.applied = func() ([]workv1.AppliedManifestWork, error) { return nil, nil }
	require.NoError(t, registry.Register(g))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			assert.Zero(t, metric.GetGauge().GetValue(), family.GetName())
		}
	}
}

// Shows: work/complete-rechecked
func TestThawingWakesTheWork(t *testing.T) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	manifests := read(t, configMap("a"), configMap("b"))
	manifests[0].Options.Rules = []workv1.ConditionRule{{Condition: workv1.ManifestComplete}}
	says := func(complete metav1.ConditionStatus) []apply.Result {
		return []apply.Result{
			{Presence: manifest.Present, Feedback: &watch.Feedback{Conditions: []metav1.Condition{{
				Type: workv1.ManifestComplete, Status: complete, Reason: workv1.ConditionRuleEvaluated,
			}}}},
			{Presence: manifest.Present},
		}
	}
	f := &facts{now: epoch, work: work, manifests: manifests}
	done := concludeStatus(f, says(metav1.ConditionTrue))
	work.Status = done
	steps := make([]apply.Step, len(manifests))
	for i := range steps {
		steps[i].Manifest = &manifests[i]
		steps[i].Frozen = status.Frozen(work, &manifests[i], &done.ResourceStatus.Manifests[i])
		assert.True(t, steps[i].Frozen)
	}
	assert.Equal(t, reconcile.Done(), thaw(work, steps, done, epoch))
	open := concludeStatus(f, says(metav1.ConditionFalse))
	assert.Equal(t, reconcile.DoneUntil(epoch), thaw(work, steps, open, epoch))
	steps[0].Frozen = false
	assert.Equal(t, reconcile.DoneUntil(epoch), thaw(work, steps, open, epoch), "the rest of the work thaws with it")
	steps[1].Frozen = false
	assert.Equal(t, reconcile.Done(), thaw(work, steps, open, epoch))
}

func TestAWrongExecutorAppliesNothingAndAsksNobody(t *testing.T) {
	r := acting(t)
	f := workOf([]byte(configMap("a")))
	f.now = epoch
	f.work.Spec.Executor = &workv1.ManifestWorkExecutor{
		Subject: workv1.ManifestWorkExecutorSubject{Type: "ServiceAccount"},
	}
	f.manifests = readBy(t, r, f)
	in := r.input(f)
	r.authorize(t.Context(), f, in)
	assert.Nil(t, in.session)
	step := planStep(in, 0)
	assert.Equal(t, apply.Forbidden, step.Action)
	require.EqualError(t, step.Denial.Err, "the executor service account is nil")
	assert.True(t, step.Denial.Final)
}

// Shows: work/no-polling
func TestAKindThatIsNotServedIsLookedUpMoreAndMoreRarely(t *testing.T) {
	r := &Reconciler{parts: parts{store: watch.NewStore(func(watch.Owner) {}, func() {}), notes: newNotes()}}
	f := &facts{owner: watch.Owner{Name: "w"}, now: epoch, manifests: read(t,
		`{"apiVersion":"example.com/v1","kind":"X","metadata":{"name":"a"}}`)}
	require.True(t, f.manifests[0].Unserved())
	assert.Equal(t, epoch.Add(firstUnserved), r.awaitKinds(f))
	lookups := 0
	for end := epoch.Add(24 * time.Hour); f.now.Before(end); lookups++ {
		f.now = r.awaitKinds(f)
	}
	assert.Less(t, lookups, 320, "a definition wakes the work, and only aggregated APIs come without one")
}

// large answers each request with an object of so many bytes, and counts the requests.
type large struct{ bytes, requests int }

func (l *large) RoundTrip(*http.Request) (*http.Response, error) {
	l.requests++
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(http.StatusOK)
	_, err := answer.WriteString(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns","uid":"u",` +
		`"resourceVersion":"1"},"data":{"x":"` + strings.Repeat("y", l.bytes) + `"}}`)
	result := answer.Result()
	result.ContentLength = int64(answer.Body.Len())
	return result, err
}

func TestALargeObjectIsAskedForTwiceInTheLifeOfAnAgent(t *testing.T) {
	r := acting(t)
	server := &large{bytes: 100_000}
	client, err := spoke.NewClient(&rest.Config{Host: "http://spoke.example"}, &http.Client{Transport: server})
	require.NoError(t, err)
	r.applier.Client = client
	f := workOf([]byte(configMap("a")))
	f.room = spoke.NewRoom()
	f.now, f.applied = epoch, &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "applied", UID: "owner"}}
	f.manifests = readBy(t, r, f)
	r.claim(f)
	for pass, requests := range []int{2, 3} {
		in := r.input(f)
		p := planAll(in)
		p.steps[0].Action = apply.Read
		results := r.act(t.Context(), f, &p)
		require.NoError(t, results[0].Err)
		assert.Equal(t, manifest.Present, results[0].Presence)
		assert.Equal(t, requests, server.requests, "pass %d", pass)
	}
	state, _ := r.store.Look(f.owner, f.manifests[0].ID())
	assert.InDelta(t, server.bytes, state.Bytes, 200)
}

func TestAStepThatHadNoTurnBeforeTheEndIsNotApplied(t *testing.T) {
	r := acting(t)
	f := workOf([]byte(strings.Replace(configMap("a"), `{`, `{"data":{"x":"`+strings.Repeat("y", 100_000)+`"},`, 1)))
	f.room = spoke.NewRoom()
	f.now, f.applied = epoch, &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "applied", UID: "owner"}}
	f.manifests = readBy(t, r, f)
	r.claim(f)
	in := r.input(f)
	p := planAll(in)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	entered, leave := make(chan struct{}), make(chan struct{})
	go func() {
		_ = f.room.Decode(context.WithoutCancel(ctx), 2<<20, func() { close(entered); <-leave })
	}()
	<-entered
	defer close(leave)
	results := r.act(ctx, f, &p)
	require.ErrorIs(t, results[0].Err, context.Canceled)
	require.Error(t, results[0].ReadErr, "so that it is not taken for an object that is gone")
	state, _ := r.store.Look(f.owner, f.manifests[0].ID())
	assert.Zero(t, state.Requested, "nothing was learned")
}

func TestAStepThatSendsNothingWaitsForNobody(t *testing.T) {
	r := acting(t)
	f := workOf([]byte(strings.Replace(configMap("a"), `{`, `{"data":{"x":"`+strings.Repeat("y", 100_000)+`"},`, 1)))
	f.now, f.applied = epoch, &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "applied", UID: "owner"}}
	f.room = spoke.NewRoom()
	f.manifests = readBy(t, r, f)
	r.claim(f)
	in := r.input(f)
	in.session = &executor.Session{}
	p := planAll(in)
	p.steps[0].Action = apply.Skip
	require.NoError(t, f.room.Decode(t.Context(), 2<<20, func() {
		r.act(t.Context(), f, &p)
	}))
}
