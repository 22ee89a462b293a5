package work

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

var (
	done = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	key  = types.NamespacedName{Namespace: "cluster1", Name: "w"}
)

// completed is a work that was complete at the instant done and has a time to live.
func completed(ttl *int64, change ...func(*workv1.ManifestWork)) *workv1.ManifestWork {
	w := &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, UID: "uid", ResourceVersion: "7", Generation: 3,
		},
		Spec: workv1.ManifestWorkSpec{DeleteOption: &workv1.DeleteOption{TTLSecondsAfterFinished: ttl}},
		Status: workv1.ManifestWorkStatus{Conditions: []metav1.Condition{{
			Type: workv1.WorkComplete, Status: metav1.ConditionTrue, ObservedGeneration: 3,
			LastTransitionTime: metav1.NewTime(done),
		}}},
	}
	for _, one := range change {
		one(w)
	}
	return w
}

// Shows: work/ttl-decided
func TestWhenAWorkIsToGo(t *testing.T) {
	for name, c := range map[string]struct {
		work *workv1.ManifestWork
		due  time.Time
	}{
		"a work goes its time to live after it was complete": {
			work: completed(ptr.To[int64](90)), due: done.Add(90 * time.Second),
		},
		"the clock of the agent is an hour behind": {
			work: completed(ptr.To[int64](90), func(w *workv1.ManifestWork) {
				w.CreationTimestamp = metav1.NewTime(done.Add(time.Hour))
			}), due: done.Add(time.Hour + 90*time.Second),
		},
		"a time of zero means at once":    {work: completed(ptr.To[int64](0)), due: done},
		"a time below zero means at once": {work: completed(ptr.To[int64](-5)), due: done},
		"a work without a time stays":     {work: completed(nil)},
		"a work without an option stays":  {work: completed(nil, func(w *workv1.ManifestWork) { w.Spec.DeleteOption = nil })},
		"a work of which nothing is said stays": {
			work: completed(ptr.To[int64](0), func(w *workv1.ManifestWork) { w.Status.Conditions = nil }),
		},
		"a work that is not complete stays": {
			work: completed(ptr.To[int64](0), func(w *workv1.ManifestWork) {
				w.Status.Conditions[0].Status = metav1.ConditionFalse
			}),
		},
		"what was complete before its spec changed stays until the agent has looked again": {
			work: completed(ptr.To[int64](0), func(w *workv1.ManifestWork) { w.Generation = 4 }),
		},
		"a condition without a generation counts": {
			work: completed(ptr.To[int64](1), func(w *workv1.ManifestWork) {
				w.Status.Conditions[0].ObservedGeneration = 0
			}),
			due: done.Add(time.Second),
		},
		"a work of a replica set is not ours": {
			work: completed(ptr.To[int64](0), func(w *workv1.ManifestWork) {
				w.Labels = map[string]string{LabelReplicaSet: "ns.set"}
			}),
		},
		"a work that goes already needs nobody": {
			work: completed(ptr.To[int64](0), func(w *workv1.ManifestWork) { w.DeletionTimestamp = ptr.To(metav1.NewTime(done)) }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := finishedOf(c.work)
			if c.due.IsZero() {
				assert.Nil(t, f)
				return
			}
			require.NotNil(t, f)
			assert.Equal(t, finished{uid: "uid", version: "7", due: c.due}, *f)
		})
	}
}

func TestATimeThatCannotBeCountedIsVeryLong(t *testing.T) {
	f := finishedOf(completed(ptr.To[int64](math.MaxInt64)))
	require.NotNil(t, f)
	assert.Greater(t, f.due.Year(), 2300)
}

// hub plays the API server.
type hub struct {
	client.WithWatch
	answer  error
	deleted []client.DeleteOptions
}

func (h *hub) Delete(_ context.Context, _ client.Object, options ...client.DeleteOption) error {
	var o client.DeleteOptions
	o.ApplyOptions(options)
	h.deleted = append(h.deleted, o)
	return h.answer
}

func newReconciler(t *testing.T, now time.Time, cached ...client.Object) (*Reconciler, *finishedWorks, *hub) {
	t.Helper()
	h := &hub{}
	scheme := runtime.NewScheme()
	require.NoError(t, workv1.Install(scheme))
	r := &Reconciler{
		Works: h, OfAddOns: fake.NewClientBuilder().WithScheme(scheme).WithObjects(cached...).Build(),
		Clock: clocktesting.NewFakePassiveClock(now),
	}
	queue := priorityqueue.New[ctrl.Request]("test")
	t.Cleanup(queue.ShutDown)
	r.keep(queue)
	return r, &r.finished, h
}

func TestAWorkIsDeletedWhenItsTimeIsOverAndNotBefore(t *testing.T) {
	r, seen, h := newReconciler(t, done)
	seen.Update(t.Context(), completed(ptr.To[int64](90)))
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.NoError(t, err)
	assert.Equal(t, 90*time.Second, result.RequeueAfter)
	assert.Empty(t, h.deleted)

	r.Clock = clocktesting.NewFakePassiveClock(done.Add(90 * time.Second))
	result, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.NoError(t, err)
	assert.Zero(t, result.RequeueAfter)
	require.Len(t, h.deleted, 1)
	assert.Equal(t, types.UID("uid"), *h.deleted[0].Preconditions.UID)
	assert.Equal(t, "7", *h.deleted[0].Preconditions.ResourceVersion)
}

func TestAWorkOfAnAddOnIsDeletedLikeAnyOther(t *testing.T) {
	waits := completed(ptr.To[int64](90), func(w *workv1.ManifestWork) { w.Name = "waits" })
	stays := completed(nil, func(w *workv1.ManifestWork) { w.Name = "stays" })
	due := completed(ptr.To[int64](0))
	r, _, h := newReconciler(t, done, waits, stays, due)
	assert.True(t, isFinished(waits))
	assert.False(t, isFinished(stays))
	for name, after := range map[string]time.Duration{"waits": 90 * time.Second, "stays": 0, "gone": 0} {
		of := types.NamespacedName{Namespace: key.Namespace, Name: name}
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: of})
		require.NoError(t, err)
		assert.Equal(t, after, result.RequeueAfter, name)
	}
	assert.Empty(t, h.deleted)
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.NoError(t, err)
	require.Len(t, h.deleted, 1)
	assert.Equal(t, types.UID("uid"), *h.deleted[0].Preconditions.UID)
}

func TestWhatIsNotToGoIsLeftAlone(t *testing.T) {
	for name, forget := range map[string]func(context.Context, *finishedWorks){
		"the work went":                   func(ctx context.Context, s *finishedWorks) { s.Delete(ctx, completed(ptr.To[int64](0))) },
		"its time was taken from it":      func(ctx context.Context, s *finishedWorks) { s.Update(ctx, completed(nil)) },
		"a new list does not have it":     func(ctx context.Context, s *finishedWorks) { s.Replace(ctx, nil, "9") },
		"it became part of a replica set": func(ctx context.Context, s *finishedWorks) { s.Delete(ctx, completed(ptr.To[int64](0))) },
	} {
		t.Run(name, func(t *testing.T) {
			r, seen, h := newReconciler(t, done)
			seen.Replace(t.Context(), []*workv1.ManifestWork{completed(ptr.To[int64](0))}, "7")
			forget(t.Context(), seen)
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			require.NoError(t, err)
			assert.Empty(t, h.deleted)
		})
	}
}

func TestAWorkThatChangedMeanwhileIsNoError(t *testing.T) {
	works := workv1.Resource("manifestworks")
	for name, c := range map[string]struct {
		answer error
		again  bool
	}{
		"it is gone":        {answer: apierrors.NewNotFound(works, "w")},
		"somebody wrote it": {answer: apierrors.NewConflict(works, "w", assert.AnError), again: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, seen, h := newReconciler(t, done)
			h.answer = c.answer
			seen.Update(t.Context(), completed(ptr.To[int64](0)))
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			require.NoError(t, err)
			assert.Equal(t, c.again, result != ctrl.Result{}, "whether there is another pass")
		})
	}
	r, seen, h := newReconciler(t, done)
	h.answer = assert.AnError
	seen.Update(t.Context(), completed(ptr.To[int64](0)))
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.ErrorIs(t, err, assert.AnError)
}

func TestOnlyWhatDecidesIsKeptOfAWork(t *testing.T) {
	w := completed(ptr.To[int64](5))
	w.Spec.Workload.Manifests = make([]workv1.Manifest, 3)
	w.Status.ResourceStatus.Manifests = make([]workv1.ManifestCondition, 3)
	before := finishedOf(w)
	trim(w)
	assert.Equal(t, before, finishedOf(w))
	assert.Empty(t, w.Spec.Workload.Manifests)
	assert.Empty(t, w.Status.ResourceStatus.Manifests)
}
