package work

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/agent/work/offline"
	"github.com/spokelet/spokelet/agent/work/prune"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/internal/names"
)

// returning is an agent that starts again. Of the work of before it applied the ConfigMaps a and b, of which a user
// took the owner reference off a meanwhile. It makes passes by the work that the cache of the hub has.
type returning struct {
	*Reconciler
	*testing.T
	clock *testclock.FakePassiveClock
	// asked is how often the hub was asked for the work; err is what it answers then, if it does not answer live.
	asked int
	err   error

	mu sync.Mutex
	// written and deleted are the names of the objects that were written or deleted on the cluster.
	written, deleted []string
}

// of is a work of a UID and generation with ConfigMaps.
func of(uid types.UID, generation int64, has ...string) *workv1.ManifestWork {
	raws := make([][]byte, len(has))
	for i, name := range has {
		raws[i] = []byte(configMap(name))
	}
	work := workOf(raws...).work
	work.Namespace, work.UID, work.Generation = "c", uid, generation
	work.Finalizers = []string{names.FinalizerManifestWork}
	return work
}

// going is a work that is being deleted.
func going(work *workv1.ManifestWork) *workv1.ManifestWork {
	work.DeletionTimestamp = &metav1.Time{Time: epoch}
	return work
}

// returns makes an agent that starts again with a record of what it applied, empty for none.
func returns(t *testing.T, record string) *returning {
	t.Helper()
	r, f := backAt(t, 1)
	require.NotNil(t, f.applied)
	a := &returning{Reconciler: r, T: t, clock: testclock.NewFakePassiveClock(f.now)}
	with := acting(t)
	r.notes = newNotes()
	r.store, r.authorizer, r.counts, r.applier, r.Clock = with.store, with.authorizer, with.counts, with.applier, a.clock
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	objects, err := spoke.NewClient(&rest.Config{Host: server.URL}, server.Client())
	require.NoError(t, err)
	r.applier.Client, r.inventory.Objects = objects, objects
	r.pruner = prune.Pruner{
		Client: objects, Store: r.store, Mapper: r.mapper, Count: r.counts.deletion, Timeout: prune.DefaultTimeout,
	}
	if f.applied.Annotations[inventory.AnnotationGeneration] = record; record == "" {
		delete(f.applied.Annotations, inventory.AnnotationGeneration)
	}
	f.applied.Finalizers = []string{names.FinalizerAppliedManifestWork}
	require.NoError(t, r.inventory.Client.Update(t.Context(), f.applied))
	return a
}

// ServeHTTP is the API server of the cluster.
func (a *returning) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := path.Base(request.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	owner := `,"ownerReferences":[{"apiVersion":"work.open-cluster-management.io/v1","kind":"AppliedManifestWork",` +
		`"name":"hash-w","uid":"applied"}]`
	body := func(owner string) string {
		uid := map[string]string{"a": "1", "b": "2"}[name]
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"ns","uid":"` + uid +
			`","resourceVersion":"5"` + owner + `}}`
	}
	switch {
	case request.Method == http.MethodDelete:
		a.deleted = append(a.deleted, name)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	case request.Method != http.MethodGet:
		if name == "configmaps" {
			name = "c" // the one that is not there
		}
		a.written = append(a.written, name)
		_, _ = io.WriteString(w, body(owner))
	case name == "a":
		_, _ = io.WriteString(w, body(""))
	case name == "b":
		_, _ = io.WriteString(w, body(owner))
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,`+
			`"details":{"name":"`+name+`","kind":"configmaps"}}`)
	}
}

// pass makes a pass by what the cache of the hub has; live is the work that the hub itself has, nil for none.
func (a *returning) pass(cached, live *workv1.ManifestWork) ctrl.Result {
	a.Helper()
	store := func(work *workv1.ManifestWork) client.WithWatch {
		b := fake.NewClientBuilder().WithScheme(a.inventory.Client.Scheme()).WithStatusSubresource(&workv1.ManifestWork{})
		if work != nil {
			b.WithObjects(work.DeepCopy())
		}
		return b.Build()
	}
	a.Hub = stubHub{client: store(cached), live: interceptor.NewClient(store(live), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if a.asked++; a.err != nil {
				return a.err
			}
			return c.Get(ctx, key, o, opts...)
		},
	})}
	result, err := a.Reconcile(a.Context(), a.request("w"))
	require.NoError(a, err)
	return result
}

// record returns what is recorded in the AppliedManifestWork.
func (a *returning) record() string {
	a.Helper()
	return recorded(a.T, a.Reconciler).Annotations[inventory.AnnotationGeneration]
}

// TestTheDeletionOfAnEarlierWorkTakesNothingOfThePresentOne: a work is deleted and created again under its name, as
// add-ons do, and the agent applied the present one. It starts again, beside an API server of the hub that still lists
// the last of the earlier work: that it is being deleted.
//
// Shows: work/earlier-work
func TestTheDeletionOfAnEarlierWorkTakesNothingOfThePresentOne(t *testing.T) {
	a := returns(t, "present/1")
	present := of("present", 1, "a", "b")
	for range 3 {
		result := a.pass(going(of("earlier", 5, "a")), present)
		assert.Equal(t, behindPause, result.RequeueAfter)
	}
	assert.Empty(t, a.deleted, "the AppliedManifestWork of the present work, and all of its objects, are deleted")
	assert.Empty(t, a.written)
	a.pass(present, present)
	assert.Empty(t, a.deleted)
	assert.Equal(t, []string{"a"}, a.written, "the present one is in force")
	assert.Equal(t, 3, a.asked)
}

// TestAnEarlierWorkIsNotAppliedInPlaceOfThePresentOne is the same with a list of before that deletion: the earlier work
// lives, and lacks object b. Its copy for times without the hub is not made either.
//
// Shows: work/earlier-work
func TestAnEarlierWorkIsNotAppliedInPlaceOfThePresentOne(t *testing.T) {
	a := returns(t, "present/1")
	var err error
	a.Cache, err = offline.Open(t.Context(), copiesIn(t, "hash", "c"))
	require.NoError(t, err)
	a.queues.copies = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer a.queues.copies.ShutDown()
	earlier := of("earlier", 5, "a")
	for range 3 {
		assert.Equal(t, behindPause, a.pass(earlier, of("present", 1, "a", "b")).RequeueAfter)
		copied, err := (&copier{Reconciler: a.Reconciler}).Reconcile(t.Context(), a.request("w"))
		require.NoError(t, err)
		assert.Zero(t, copied)
	}
	assert.Empty(t, a.deleted, "object b is deleted by a work that the hub does not have any more")
	assert.Empty(t, a.written)
	assert.Equal(t, "present/1", a.record(), "nothing else proves that the cache is behind")
	known, err := a.Cache.Load(t.Context(), "w")
	require.NoError(t, err)
	assert.Nil(t, known)
}

// TestAHubThatHasAnotherWorkIsAskedOnceForIt has the cases in which the cache is right although another work was
// applied.
//
// Shows: work/earlier-work
func TestAHubThatHasAnotherWorkIsAskedOnceForIt(t *testing.T) {
	for sentence, c := range map[string]struct {
		record     string
		work       *workv1.ManifestWork
		asked      int
		wantRecord string
	}{
		"deleted and created again while the agent was away": {"earlier/5", of("u", 1, "a"), 1, "u/1"},
		"a hub from a backup has the one of before":          {"later/1", of("u", 4, "a"), 1, "u/4"},
		"what was recorded cannot be read":                   {"?", of("u", 1, "a"), 1, "u/1"},
		"nothing was recorded, and b is to go":               {"", of("u", 1, "a"), 1, "u/1"},
		"nothing was recorded, and nothing goes":             {"", of("u", 1, "a", "b"), 0, ""},
		"the same work":                                      {"u/1", of("u", 2, "a"), 0, "u/1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := returns(t, c.record)
			for range 3 {
				a.pass(c.work, c.work)
			}
			assert.Equal(t, c.asked, a.asked)
			assert.Equal(t, c.wantRecord, a.record())
			assert.Contains(t, a.written, "a")
			if len(c.work.Spec.Workload.Manifests) == 1 {
				assert.Contains(t, a.deleted, "b", "the work means what it says now")
			}
		})
		t.Run(sentence+", and it is deleted", func(t *testing.T) {
			a := returns(t, c.record)
			work := going(c.work.DeepCopy())
			for range 3 {
				a.pass(work, work)
			}
			assert.Equal(t, []string{"hash-w"}, a.deleted[:1])
			if c.record == "u/1" {
				assert.Zero(t, a.asked)
			}
		})
	}
}

// TestAHubThatDoesNotAnswerLetsNothingGo: it cannot say whether the cache is right, so what was applied is repaired,
// nothing new is made, and nothing is deleted. It is not asked in each pass, for each would wait for it.
//
// Shows: work/earlier-work
func TestAHubThatDoesNotAnswerLetsNothingGo(t *testing.T) {
	for sentence, record := range map[string]string{
		"another work was applied": "present/1", "a later generation was applied": "u/3", "nothing was recorded": "",
	} {
		t.Run(sentence, func(t *testing.T) {
			a := returns(t, record)
			a.Missing = missing.Grace // with missing.Hold, what a later generation added is held anyway
			a.err = errors.New("the hub is away")
			work := of("u", 2, "a", "c")
			for range 3 {
				assert.Equal(t, hubPause, a.pass(work, work).RequeueAfter)
			}
			assert.Equal(t, 1, a.asked)
			assert.Contains(t, a.written, "a", "a is repaired")
			assert.NotContains(t, a.written, "c", "c was not there")
			assert.Empty(t, a.deleted)
			assert.Equal(t, record, a.record())
			assert.Len(t, recorded(t, a.Reconciler).Status.AppliedResources, 2)
			a.err = nil
			a.clock.SetTime(a.clock.Now().Add(hubPause))
			a.pass(work, work)
			assert.Equal(t, 2, a.asked)
			assert.Contains(t, a.written, "c", "the hub has it so")
			assert.Equal(t, []string{"b"}, a.deleted)
		})
		t.Run(sentence+", and the cache shows a deletion", func(t *testing.T) {
			a := returns(t, record)
			a.err = errors.New("the hub is away")
			work := going(of("u", 2, "a"))
			for range 3 {
				assert.Equal(t, hubPause, a.pass(work, work).RequeueAfter)
			}
			assert.Equal(t, 1, a.asked)
			assert.Empty(t, a.deleted)
			a.err = nil
			a.clock.SetTime(a.clock.Now().Add(hubPause))
			a.pass(work, work)
			assert.Equal(t, []string{"hash-w"}, a.deleted[:1])
		})
	}
	a := returns(t, "present/1")
	a.err = errors.New("the hub is away")
	work := of("u", 1, "a")
	work.Finalizers = []string{"other"}
	assert.Equal(t, hubPause, a.pass(work, work).RequeueAfter)
	assert.Empty(t, a.written, "nothing of a work without our finalizer was applied, and nothing is now")
}

// Shows: work/earlier-work
func TestWhatAHubSaysOfTheWorkInTheCache(t *testing.T) {
	cached := of("u", 2)
	for sentence, c := range map[string]struct {
		live *workv1.ManifestWork
		err  error
		want standing
	}{
		"it is the same":                {of("u", 2), nil, standingConfirmed},
		"the hub went back further":     {of("u", 1), nil, standingConfirmed},
		"it has a later generation":     {of("u", 3), nil, standingBehind},
		"it has another of the name":    {of("v", 1), nil, standingBehind},
		"it is being deleted":           {going(of("u", 2)), nil, standingBehind},
		"it has none":                   {nil, nil, standingBehind},
		"it does not answer":            {nil, errors.New("away"), standingUnanswered},
		"it does not answer, with this": {of("u", 2), errors.New("away"), standingUnanswered},
	} {
		t.Run(sentence, func(t *testing.T) {
			var live *metav1.PartialObjectMetadata
			if c.live != nil {
				live = &metav1.PartialObjectMetadata{ObjectMeta: c.live.ObjectMeta}
			}
			assert.Equal(t, c.want, standingOf(cached, live, c.err))
		})
	}
}

// TestACacheWithoutTheRecordTakesNoEarlierWork: both caches are behind. That of the cluster lacks the AppliedManifestWork
// of the present work.
//
// Shows: work/earlier-work
func TestACacheWithoutTheRecordTakesNoEarlierWork(t *testing.T) {
	for sentence, earlier := range map[string]*workv1.ManifestWork{
		"it lives": of("earlier", 5, "a"), "it is being deleted": going(of("earlier", 5, "a")),
	} {
		t.Run(sentence, func(t *testing.T) {
			a := returns(t, "present/1")
			whole, watches := a.inventory.Client.(client.WithWatch)
			require.True(t, watches)
			a.inventory.Client = interceptor.NewClient(whole, interceptor.Funcs{
				Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					return fake.NewClientBuilder().WithScheme(whole.Scheme()).Build().Get(ctx, key, o, opts...)
				},
			})
			result := a.pass(earlier, of("present", 1, "a", "b"))
			assert.True(t, result.Requeue || result.RequeueAfter == behindPause, "%v", result)
			assert.Empty(t, a.written)
			assert.Empty(t, a.deleted)
			var work workv1.ManifestWork
			require.NoError(t, a.Hub.GetClient().Get(t.Context(), a.request("w").NamespacedName, &work), "it is not let go")
			a.inventory.Client = whole
			assert.Equal(t, "present/1", a.record())
		})
	}
}
