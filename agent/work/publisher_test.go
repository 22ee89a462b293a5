package work

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/agent/work/watch"
)

// stubHub is a hub of one client.
type stubHub struct {
	cluster.Cluster
	client client.Client
}

func (s stubHub) GetClient() client.Client    { return s.client }
func (s stubHub) GetAPIReader() client.Reader { return s.client }

// publishing returns a reconciler whose hub takes statuses by put; its queue takes who is to be looked at again.
func publishing(put func(ctx context.Context, work string) error) *Reconciler {
	hub := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		SubResourceUpdate: func(
			ctx context.Context, _ client.Client, _ string, object client.Object, _ ...client.SubResourceUpdateOption,
		) error {
			return put(ctx, object.GetName())
		},
	})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	return &Reconciler{
		Cluster: "c1", Hub: stubHub{client: hub}, Clock: clock.RealClock{},
		parts: parts{notes: newNotes(), queues: queues{works: queue}},
	}
}

// startPublisher starts the publisher of a reconciler, and returns how to stop it.
func startPublisher(t *testing.T, r *Reconciler) func() {
	t.Helper()
	r.publisher = newPublisher(DefaultWorkers)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.publisher.Start(ctx) }()
	synctest.Wait()
	return func() { cancel(); <-done }
}

// factsOf returns the facts of a work without a status.
func factsOf(name string) *facts {
	return &facts{
		now: time.Now(), owner: watch.Owner{Name: name},
		work: &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: name, UID: "u"}},
	}
}

// feedbackOf returns a status with a value of feedback and the status of its condition.
func feedbackOf(value int64, applied metav1.ConditionStatus) workv1.ManifestWorkStatus {
	return workv1.ManifestWorkStatus{
		Conditions: []metav1.Condition{{Type: workv1.WorkApplied, Status: applied}},
		ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{
				{Name: "probed", Value: workv1.FieldValue{Type: workv1.Integer, Integer: &value}},
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

// Shows: work/slow-hub
func TestAStatusReachesAHubBehindASlowLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 100)
		r := publishing(func(ctx context.Context, work string) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(25 * time.Second): // 64 kbit/s and 200 kB
				got <- work
				return nil
			}
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
	r.wroteWork(f, written)
	r.believe(f, r.notes.of(f.owner))
	outcome := r.publishStatus(t.Context(), f, feedbackOf(1, metav1.ConditionTrue))
	assert.Zero(t, sent, "the hub would refuse it")
	event := written.DeepCopy()
	event.Status = feedbackOf(2, metav1.ConditionTrue)
	assert.True(t, r.workTouched(f.work, event), "the event of the write wakes the work")
	f.now = outcome.Wake().Add(time.Second)
	r.publishStatus(t.Context(), f, feedbackOf(1, metav1.ConditionTrue))
	assert.Equal(t, 1, sent, "a hub that is older for so long was restored")
}
