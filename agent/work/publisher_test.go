package work

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/agent/work/offline"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/names"
)

// stubHub is the API server of the hub, or of the cluster, with one client and a cache that is never behind.
type stubHub struct {
	cluster.Cluster
	client client.Client
	// live holds what the hub itself answers; nil for the same as the client.
	live client.Reader
}

func (s stubHub) GetClient() client.Client { return s.client }

func (s stubHub) GetAPIReader() client.Reader {
	if s.live != nil {
		return s.live
	}
	return s.client
}

// publishing returns a reconciler whose hub takes statuses by put; its queue takes who is to be looked at again.
func publishing(put func(ctx context.Context, work string) error) *Reconciler {
	hub := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		SubResourceUpdate: func(
			ctx context.Context, _ client.Client, _ string, object client.Object, _ ...client.SubResourceUpdateOption,
		) error {
			err := put(ctx, object.GetName())
			if err == nil {
				object.SetResourceVersion("9")
			}
			return err
		},
		Patch: func(
			ctx context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption,
		) error {
			err := put(ctx, object.GetName())
			if err == nil {
				object.SetResourceVersion("9")
			}
			return err
		},
	})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	return &Reconciler{
		Cluster: "c1", Hub: stubHub{client: hub}, Clock: clock.RealClock{},
		parts: parts{notes: newNotes(), queues: queues{works: queue}},
	}
}

// startPublisher starts the publishers of a reconciler, and returns how to stop it.
func startPublisher(t *testing.T, r *Reconciler) func() {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for of := range r.publishers {
		r.publishers[of] = newPublisher(lane(of), DefaultWorkers, r.Clock)
		running.Go(func() { _ = r.publishers[of].Start(ctx) })
	}
	synctest.Wait()
	return func() { cancel(); running.Wait() }
}

// factsOf returns the facts of a work without a status.
func factsOf(name string) *facts {
	return &facts{
		now: time.Now(), owner: watch.Owner{Name: name},
		work: &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
			Namespace: "c1", Name: name, UID: "u", ResourceVersion: "1",
		}},
	}
}

// feedbackOf returns a status with a value of feedback, with which the time of a condition moves, and the status of the
// condition of the work.
func feedbackOf(value int64, applied metav1.ConditionStatus) workv1.ManifestWorkStatus {
	return workv1.ManifestWorkStatus{
		Conditions: []metav1.Condition{{Type: workv1.WorkApplied, Status: applied}},
		ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{
				{Name: "probed", Value: workv1.FieldValue{Type: workv1.Integer, Integer: &value}},
			}},
			Conditions: []metav1.Condition{{
				Type: "StatusFeedbackSynced", Status: metav1.ConditionTrue, LastTransitionTime: metav1.Unix(value, 0),
			}},
		}}},
	}
}

// Shows: work/slow-hub
func TestAHubThatDoesNotAnswerHoldsUpNoPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := publishing(func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() })
		defer r.queues.works.ShutDown()
		defer startPublisher(t, r)()
		began := time.Now()
		for i := range 34 {
			f := factsOf(fmt.Sprint(i))
			r.publishStatus(t.Context(), f, feedbackOf(1, metav1.ConditionTrue))
			assert.Empty(t, f.work.Status.Conditions)
		}
		assert.LessOrEqual(t, time.Since(began), 2*hubTimeout, "the spoke comes before the hub")
	})
}

// TestAHubThatIsBusyGetsAFinalizerByOneRequest has a hub that takes ten seconds for each request, and is as busy with one
// that is given up.
//
// Shows: work/slow-hub
func TestAHubThatIsBusyGetsAFinalizerByOneRequest(t *testing.T) {
	const takes = 10 * time.Second
	for sentence, pass := range map[string]func(context.Context, *Reconciler, *facts) bool{
		"a work that is new": func(ctx context.Context, r *Reconciler, f *facts) bool {
			kept, outcome := r.ensureFinalizer(ctx, f)
			return kept && outcome.Err() == nil
		},
		"a work that goes": func(ctx context.Context, r *Reconciler, f *facts) bool {
			f.work.Finalizers = []string{names.FinalizerManifestWork}
			wait, err := r.finalizeWork(ctx, f)
			return wait == nil && err == nil && r.notes.of(f.owner).work.gone
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				r := publishing(func(ctx context.Context, _ string) error {
					asked++
					select {
					case <-time.After(takes):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				defer r.queues.works.ShutDown()
				defer startPublisher(t, r)()
				began := time.Now()
				for range 5 {
					f := factsOf("w")
					f.work.ResourceVersion = "7"
					assert.False(t, pass(t.Context(), r, f), "nothing is applied, and nothing forgotten, before the hub has it")
				}
				assert.LessOrEqual(t, time.Since(began), hubTimeout, "no pass waits for it but the first")
				time.Sleep(takes)
				synctest.Wait()
				assert.Equal(t, 1, r.queues.works.Len(), "its end wakes the work")
				f := factsOf("w")
				f.work.ResourceVersion = "7" // the event of the write takes its time, too
				pass(t.Context(), r, f)
				assert.Equal(t, 1, asked)
			})
		})
	}
}

// Shows: work/slow-hub
func TestAFinalizerThatABusyHubHasIsBelieved(t *testing.T) {
	r := publishing(func(context.Context, string) error { return nil })
	defer r.queues.works.ShutDown()
	f := factsOf("w")
	f.work.ResourceVersion = "7"
	kept, _ := r.ensureFinalizer(t.Context(), f)
	require.True(t, kept)
	assert.Equal(t, []string{names.FinalizerManifestWork}, f.work.Finalizers)
	for sentence, c := range map[string]struct {
		uid     types.UID
		version string
		after   time.Duration
		asks    bool
	}{
		"the cache is behind":              {uid: "u", version: "7"},
		"another client took it":           {uid: "u", version: "10", asks: true},
		"it is another work of that name":  {uid: "v", version: "7", asks: true},
		"the hub was restored to a former": {uid: "u", version: "7", after: publishTimeout + time.Second, asks: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			asked := false
			r := publishing(func(context.Context, string) error { asked = true; return nil })
			defer r.queues.works.ShutDown()
			written := f.work.DeepCopy()
			written.ResourceVersion = "9"
			r.noteWork(f.owner, written)
			g := factsOf("w")
			g.work.UID, g.work.ResourceVersion, g.now = c.uid, c.version, time.Now().Add(c.after)
			kept, _ := r.ensureFinalizer(t.Context(), g)
			assert.True(t, kept)
			assert.Equal(t, c.asks, asked)
		})
	}
}

// Shows: work/slow-hub
func TestAStatusReachesAHubBehindASlowLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 100)
		link := &sharedLink{rate: 64_000 / 8}
		r := publishing(func(ctx context.Context, work string) error {
			err := link.send(ctx, 40_000)
			if err == nil {
				got <- work
			}
			return err
		})
		defer r.queues.works.ShutDown()
		defer startPublisher(t, r)()
		for i := range 10 { // as the passes of ten works, which are repeated when they are asked for
			work := factsOf(fmt.Sprint(i))
			outcome := r.publishStatus(t.Context(), work, feedbackOf(1, metav1.ConditionTrue))
			for work.now = time.Now(); !outcome.Wake().IsZero(); work.now = time.Now() {
				time.Sleep(outcome.Wake().Sub(work.now)) // of the fake clock
				outcome = r.publishStatus(t.Context(), work, feedbackOf(1, metav1.ConditionTrue))
			}
			r.publishStatus(t.Context(), work, feedbackOf(2, metav1.ConditionTrue))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Len(t, got, 10, "each once, while it is on its way")
		assert.Equal(t, 10, r.queues.works.Len(), "and then each work is looked at again")
	})
}

// Shows: work/feedback-limited
func TestFeedbackThatMovesAllTheTimeIsSentNowAndThen(t *testing.T) {
	sent := 0
	r := publishing(func(context.Context, string) error { sent++; return nil })
	defer r.queues.works.ShutDown()
	f := factsOf("w")
	for i := range int64(240) { // four a second for a minute
		f.now = f.now.Add(feedbackPause)
		r.publishStatus(t.Context(), f, feedbackOf(i, metav1.ConditionTrue))
	}
	assert.LessOrEqual(t, sent, 16)
	before := sent
	r.publishStatus(t.Context(), f, feedbackOf(240, metav1.ConditionFalse))
	r.publishStatus(t.Context(), f, feedbackOf(240, metav1.ConditionTrue))
	assert.Equal(t, before+2, sent, "a condition that flips always goes")
	outcome := r.publishStatus(t.Context(), f, feedbackOf(241, metav1.ConditionTrue))
	f.now = outcome.Wake().Add(time.Millisecond)
	r.publishStatus(t.Context(), f, feedbackOf(241, metav1.ConditionTrue))
	assert.Equal(t, before+3, sent, "the last value arrives")
}

// Shows: work/slow-hub
func TestNoStatusIsSentForAnOlderWorkThanTheHubHas(t *testing.T) {
	sent := 0
	r := publishing(func(context.Context, string) error { sent++; return nil })
	defer r.queues.works.ShutDown()
	f := factsOf("w")
	f.work.ResourceVersion = "7" // as the cache has it, while the hub took a status
	written := f.work.DeepCopy()
	written.ResourceVersion = "9"
	r.noteWork(f.owner, written)
	r.believe(f, r.notes.of(f.owner))
	outcome := r.publishStatus(t.Context(), f, feedbackOf(1, metav1.ConditionTrue))
	assert.Zero(t, sent, "the hub would refuse it")
	event := written.DeepCopy()
	event.Status = feedbackOf(2, metav1.ConditionTrue)
	assert.True(t, r.workTouched(f.work, event), "the event of the write wakes the work")
	assert.Equal(t, f.now.Add(hubPause), outcome.Wake(), "an event that came while the pass looked wakes nothing")
	seen := factsOf("w")
	seen.work, seen.now = event.DeepCopy(), outcome.Wake()
	r.publishStatus(t.Context(), seen, feedbackOf(1, metav1.ConditionTrue))
	assert.Equal(t, 1, sent, "then the cache has it")
	f.now = r.notes.of(f.owner).work.aheadUntil().Add(time.Second)
	r.publishStatus(t.Context(), f, feedbackOf(1, metav1.ConditionTrue))
	assert.Equal(t, 2, sent, "a hub that is older for so long was restored")
}

// TestTheMetadataOfAWorkTellWhetherACacheIsLate has a link over which the event of a status takes longer than a minute.
//
// Shows: work/slow-link
func TestTheMetadataOfAWorkTellWhetherACacheIsLate(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Group: workv1.GroupName, Resource: "manifestworks"}, "w")
	for sentence, c := range map[string]struct {
		version string
		answer  error
		sent    int
		behind  bool
	}{
		"the hub has it as written":   {version: "9", behind: true},
		"another client wrote it":     {version: "10", behind: true},
		"the hub was restored":        {version: "7", sent: 1},
		"the work is gone":            {version: "9", answer: gone, sent: 1},
		"the hub does not answer now": {version: "9", answer: context.DeadlineExceeded},
	} {
		t.Run(sentence, func(t *testing.T) {
			sent := 0
			r := publishing(func(context.Context, string) error { sent++; return nil })
			defer r.queues.works.ShutDown()
			f := factsOf("w")
			f.work.ResourceVersion = "7"
			metas := metasOf(t, f.work, c.version)
			if c.answer != nil {
				metas.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, c.answer
				})
			}
			r.hubMetas = metas
			written := f.work.DeepCopy()
			written.ResourceVersion = "9"
			r.noteWork(f.owner, written)
			f.now = f.now.Add(publishTimeout + time.Second)
			r.Clock = clocktesting.NewFakePassiveClock(f.now)
			outcome := r.publishStatus(t.Context(), f, feedbackOf(1, metav1.ConditionTrue))
			assert.Equal(t, c.sent, sent)
			assert.Equal(t, c.sent == 0 && !c.behind, outcome.Err() != nil)
			if !c.behind {
				return
			}
			assert.Equal(t, f.now.Add(hubPause), outcome.Wake())
			asked := len(metas.Actions())
			f.now = f.now.Add(publishTimeout)
			r.publishStatus(t.Context(), f, feedbackOf(1, metav1.ConditionTrue))
			assert.Len(t, metas.Actions(), asked, "the hub is asked once a minute")
			assert.Zero(t, sent)
		})
	}
}

// TestAStatusWithoutAnAnswerIsNotSentAgainInVain has a hub that took a status whose answer came too late, as behind a link
// on which the event of the status comes before it.
//
// Shows: work/slow-link
func TestAStatusWithoutAnAnswerIsNotSentAgainInVain(t *testing.T) {
	for sentence, c := range map[string]struct {
		fails error
		live  string
		sent  int
	}{
		"the hub took it":                    {fails: context.DeadlineExceeded, live: "8", sent: 1},
		"the hub did not take it":            {fails: context.DeadlineExceeded, live: "7", sent: 2},
		"the hub refused it, so it does not": {fails: apierrors.NewBadRequest("no"), live: "8", sent: 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			sent := 0
			r := publishing(func(context.Context, string) error { sent++; return c.fails })
			defer r.queues.works.ShutDown()
			f := factsOf("w")
			f.work.ResourceVersion = "7"
			metas := metasOf(t, f.work, c.live)
			r.hubMetas = metas
			r.publishStatus(t.Context(), f, feedbackOf(1, metav1.ConditionTrue))
			f.now = f.now.Add(publishTimeout)
			r.Clock = clocktesting.NewFakePassiveClock(f.now)
			outcome := r.publishStatus(t.Context(), f, feedbackOf(1, metav1.ConditionTrue))
			require.Equal(t, c.sent, sent)
			if c.sent > 1 {
				return
			}
			assert.NotZero(t, outcome.Wake())
			assert.False(t, r.notes.of(f.owner).work.lag(f.work.UID, "7", true, f.now), "the spoke does not wait for that")
			event := f.work.DeepCopy()
			event.ResourceVersion = c.live
			assert.True(t, r.workTouched(f.work, event), "the event wakes the work, whatever it is about")
			assert.False(t, r.workTouched(event, event), "one of the same version does not")
			f.work = event
			r.publishStatus(t.Context(), f, feedbackOf(2, metav1.ConditionTrue))
			assert.Equal(t, 2, sent)
			assert.Len(t, metas.Actions(), 1, "the hub is asked once")
		})
	}
}

// silentMetas is a hub that does not answer.
type silentMetas struct {
	metadata.Interface
	metadata.ResourceInterface
}

func (h silentMetas) Resource(schema.GroupVersionResource) metadata.Getter { return h }
func (h silentMetas) Namespace(string) metadata.ResourceInterface          { return h }

func (h silentMetas) Get(ctx context.Context, _ string, _ metav1.GetOptions, _ ...string) (
	*metav1.PartialObjectMetadata, error,
) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Shows: work/slow-hub
func TestAHubThatDoesNotAnswerForAnHourHoldsUpNoPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := publishing(func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() })
		r.hubMetas = silentMetas{}
		defer r.queues.works.ShutDown()
		defer startPublisher(t, r)()
		for minute := range 60 {
			began := time.Now()
			for i := range 30 {
				f := factsOf(fmt.Sprint("w", i))
				f.work.ResourceVersion = "7"
				r.publishStatus(t.Context(), f, feedbackOf(int64(minute), metav1.ConditionTrue))
			}
			assert.LessOrEqual(t, time.Since(began), 2*hubTimeout, "the spoke comes before the hub")
			time.Sleep(time.Minute)
		}
	})
}

// metasOf returns a client of the metadata of a work, which the hub has in a version.
func metasOf(t *testing.T, work *workv1.ManifestWork, version string) *metadatafake.FakeMetadataClient {
	t.Helper()
	live := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"},
		ObjectMeta: *work.ObjectMeta.DeepCopy(),
	}
	live.ResourceVersion = version
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	return metadatafake.NewSimpleMetadataClient(scheme, live)
}

// Shows: work/slow-hub
func TestWhatWasLearnedWithoutTheHubHoldsUpNoPass(t *testing.T) {
	cache, err := offline.Open(t.Context(), copiesIn(t, "hub", "c1"))
	require.NoError(t, err)
	status := func(complete metav1.ConditionStatus) workv1.ManifestWorkStatus {
		return workv1.ManifestWorkStatus{ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			ResourceMeta: workv1.ManifestResourceMeta{Version: "v1", Kind: "Job", Resource: "jobs", Namespace: "ns", Name: "j"},
			Conditions:   []metav1.Condition{{Type: workv1.ManifestComplete, Status: complete, Reason: "ConditionRuleEvaluated"}},
		}}}}
	}
	atHub := factsOf("w").work
	atHub.Status = status(metav1.ConditionFalse)
	cache.Invalidate("w", atHub.UID, 0)
	require.NoError(t, cache.Sync(t.Context(), atHub, "applied"))
	known, err := cache.Load(t.Context(), "w")
	require.NoError(t, err)
	complete := status(metav1.ConditionTrue)
	require.NoError(t, cache.SaveStatus(known, &complete))

	synctest.Test(t, func(t *testing.T) {
		answers := false
		r := publishing(func(ctx context.Context, _ string) error {
			if answers {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		r.Cache = cache
		defer r.queues.works.ShutDown()
		defer startPublisher(t, r)()
		pass := func() *facts {
			began := time.Now()
			f := &facts{now: began, owner: watch.Owner{Name: "w"}, work: atHub}
			require.NoError(t, r.recall(t.Context(), f))
			assert.True(t, meta.IsStatusConditionTrue(f.work.Status.ResourceStatus.Manifests[0].Conditions, workv1.ManifestComplete),
				"a complete manifest is not applied again")
			r.publishStatus(t.Context(), f, f.work.Status)
			assert.LessOrEqual(t, time.Since(began), hubTimeout, "the spoke comes before the hub")
			return f
		}
		assert.NotNil(t, pass().atHub, "the hub does not know it")
		time.Sleep(2 * publishTimeout)
		synctest.Wait()
		answers = true
		assert.NotNil(t, pass().atHub, "no pass waits while the hub is slow")
		synctest.Wait()
		learned, err := cache.UnreportedStatus(t.Context(), "w", atHub.UID)
		require.NoError(t, err)
		assert.Nil(t, learned, "the hub has it")
	})
}

// sharedLink is a link whose bandwidth all that is sent at the same time shares.
type sharedLink struct {
	mu     sync.Mutex
	rate   int // bytes a second
	shared int
	wasted int
}

// send sends so many bytes over the link.
func (l *sharedLink) send(ctx context.Context, size int) error {
	l.add(1, 0)
	defer l.add(-1, 0)
	for sent := 0; sent < size; {
		select {
		case <-ctx.Done():
			l.add(0, sent)
			return ctx.Err()
		case <-time.After(time.Second):
			l.mu.Lock()
			sent += l.rate / l.shared
			l.mu.Unlock()
		}
	}
	return nil
}

func (l *sharedLink) add(shared, wasted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shared += shared
	l.wasted += wasted
}

// Shows: work/slow-link
func TestLargeStatusesShareASlowLink(t *testing.T) {
	const works, size = 30, 100_000
	synctest.Test(t, func(t *testing.T) {
		link := &sharedLink{rate: 64_000 / 8}
		got := make(chan string, 100)
		r := publishing(func(ctx context.Context, work string) error {
			err := link.send(ctx, size)
			if err == nil {
				got <- work
			}
			return err
		})
		defer r.queues.works.ShutDown()
		defer startPublisher(t, r)()
		for i := range works { // as the passes of the works, which are repeated when they are asked for
			go func() {
				for {
					work := factsOf(fmt.Sprint(i))
					if !r.notes.of(work.owner).work.at.IsZero() {
						return
					}
					r.publishStatus(t.Context(), work, feedbackOf(1, metav1.ConditionTrue))
					select {
					case <-t.Context().Done():
						return
					case <-time.After(5 * time.Second): // of the fake clock
					}
				}
			}()
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Len(t, got, works, "each reaches the hub, which takes six minutes at least")
		assert.Zero(t, link.wasted, "none is cut off on its way")
	})
}

// Shows: work/slow-link
func TestHowManyStatusesAreSentTogether(t *testing.T) {
	const most = 10
	for name, one := range map[string]struct {
		now, sent int
		last      trip
		want      int
	}{
		"more after one that was delivered":            {4, 4, trip{took: time.Second, delivered: true}, 5},
		"more also over a link that is busy":           {1, 1, trip{took: publishTimeout / 3, delivered: true}, 2},
		"never more than there are senders":            {most, most, trip{took: time.Second, delivered: true}, most},
		"the same when it was nearly alone on its way": {4, 2, trip{took: time.Second, delivered: true}, 4},
		"half as many when one did not get through":    {most, 3, trip{took: publishTimeout}, most / 2},
		"half as many before one does not":             {5, 5, trip{took: publishTimeout / 2, delivered: true}, 2},
		"one at least":                                 {1, 1, trip{took: publishTimeout}, 1},
		"the same when the hub refuses at once":        {4, 4, trip{took: time.Second}, 4},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, one.want, together(one.now, most, one.sent, one.last)) })
	}
}
