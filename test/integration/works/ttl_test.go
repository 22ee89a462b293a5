package works_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// world is the namespace of one cluster on the hub.
type world struct {
	*testing.T
	cluster string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{T: t, cluster: plane.Namespace(t, t.Name())}
}

func (w *world) create(o client.Object) {
	w.Helper()
	require.NoError(w, plane.Client.Create(w.Context(), o))
}

// work makes a work with a ConfigMap and a time to live.
func (w *world) work(name string, ttl *int64, change ...func(*workv1.ManifestWork)) *workv1.ManifestWork {
	w.Helper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster, Name: name}}
	work.Spec.DeleteOption = &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground, TTLSecondsAfterFinished: ttl,
	}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"` + name + `"}}`),
	}}}
	for _, one := range change {
		one(work)
	}
	w.create(work)
	return work
}

// finish says what an agent says of a work: whether it is complete, since when, and as of which spec.
func (w *world) finish(work *workv1.ManifestWork, status metav1.ConditionStatus, since time.Time) {
	w.Helper()
	work.Status.Conditions = []metav1.Condition{{
		Type: workv1.WorkComplete, Status: status, Reason: "ConditionRulesAggregated",
		LastTransitionTime: metav1.NewTime(since), ObservedGeneration: work.Generation,
	}}
	require.NoError(w, plane.Client.Status().Update(w.Context(), work))
}

// gone waits until a work is gone and returns when that was seen.
func (w *world) gone(work *workv1.ManifestWork) time.Time {
	w.Helper()
	require.Eventually(w, func() bool { return !w.stands(w.Context(), work) }, suite.Timeout, suite.Tick, "%s should go", work.Name)
	return time.Now()
}

func (w *world) stands(ctx context.Context, work *workv1.ManifestWork) bool {
	err := plane.Client.Get(ctx, client.ObjectKeyFromObject(work), &workv1.ManifestWork{})
	return !apierrors.IsNotFound(err)
}

// passed waits until the hub manager has surely seen all that was written so far: another work, finished after that,
// is gone.
func (w *world) passed() {
	w.Helper()
	last := w.work("last-"+utilrand.String(4), ptr.To[int64](0))
	w.finish(last, metav1.ConditionTrue, time.Now())
	w.gone(last)
}

// Shows: work/ttl-expires
func TestAWorkGoesWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	work := w.work("w", ptr.To[int64](2))
	since := time.Now().Truncate(time.Second)
	w.finish(work, metav1.ConditionTrue, since)
	assert.False(t, w.gone(work).Before(since.Add(2*time.Second)), "it went before its time was over")
}

// Shows: work/ttl-not-configured
func TestAWorkWithoutATimeStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	without := w.work("without", nil)
	w.finish(without, metav1.ConditionTrue, time.Now().Add(-time.Hour))
	none := w.work("none", nil, func(work *workv1.ManifestWork) { work.Spec.DeleteOption = nil })
	w.finish(none, metav1.ConditionTrue, time.Now().Add(-time.Hour))
	w.passed()
	assert.True(t, w.stands(t.Context(), without))
	assert.True(t, w.stands(t.Context(), none))
}

// Shows: work/ttl-not-complete
func TestAWorkThatIsNotCompleteStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	silent := w.work("silent", ptr.To[int64](0))
	running := w.work("running", ptr.To[int64](0))
	w.finish(running, metav1.ConditionFalse, time.Now().Add(-time.Hour))
	w.passed()
	assert.True(t, w.stands(t.Context(), silent))
	assert.True(t, w.stands(t.Context(), running))

	w.finish(running, metav1.ConditionTrue, time.Now())
	w.gone(running)
}

// Shows: work/ttl-zero
func TestAWorkGoesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, ttl := range map[string]int64{"zero": 0, "below": -1} {
		work := w.work(name, ptr.To(ttl))
		w.finish(work, metav1.ConditionTrue, time.Now())
		w.gone(work)
	}
}

// Shows: work/ttl-replica-set
func TestAWorkOfAReplicaSetStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	work := w.work("replica", ptr.To[int64](0), func(work *workv1.ManifestWork) {
		work.Labels = map[string]string{"work.open-cluster-management.io/manifestworkreplicaset": "ns.set"}
	})
	w.finish(work, metav1.ConditionTrue, time.Now().Add(-time.Hour))
	w.passed()
	assert.True(t, w.stands(t.Context(), work))
}

func TestAWorkThatWasEditedStaysUntilItIsCompleteAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	work := w.work("edited", ptr.To[int64](3600))
	w.finish(work, metav1.ConditionTrue, time.Now())
	work.Spec.DeleteOption.TTLSecondsAfterFinished = ptr.To[int64](0)
	work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"more"}}`),
	}})
	require.NoError(t, plane.Client.Update(t.Context(), work))
	w.passed()
	assert.True(t, w.stands(t.Context(), work))

	w.finish(work, metav1.ConditionTrue, time.Now())
	w.gone(work)
}
