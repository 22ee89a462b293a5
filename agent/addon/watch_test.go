package addon

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func labelsOf(o client.Object) labels.Set { return o.GetLabels() }

// heardBy counts what a glass reports.
func heardBy(changes *[][2]client.Object) *glass {
	return &glass{clock: clocktesting.NewFakePassiveClock(noon), changed: func(before, after client.Object) { *changes = append(*changes, [2]client.Object{before, after}) }}
}

func TestAGlassKnowsOnlyWhatItSaw(t *testing.T) {
	var changes [][2]client.Object
	g := heardBy(&changes)
	assert.Equal(t, sight{}, g.look(), "before the first answer nothing is known")

	require.NoError(t, g.Replace(nil, ""))
	assert.Equal(t, sight{known: true}, g.look(), "absence is known, and reported")
	assert.Len(t, changes, 1)

	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "hello", ManagedFields: []metav1.ManagedFieldsEntry{{}}}}
	require.NoError(t, g.Add(l))
	assert.Equal(t, l, g.look().object)
	assert.Empty(t, l.ManagedFields, "what nobody reads is not kept")

	broken := errors.New("connection refused")
	g.heard(broken)
	assert.Equal(t, sight{cause: broken}, g.look(), "a broken watch knows nothing")
	assert.Len(t, changes, 2)
	g.heard(nil)
	assert.True(t, g.look().known)
	assert.Len(t, changes, 3, "its recovery is reported")

	require.NoError(t, g.Delete(l))
	assert.Equal(t, sight{known: true}, g.look())
	require.Error(t, g.Update("no object"))
}

// queue collects the requests of a watcher.
type queue struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]
	mu    sync.Mutex
	names []string
}

func (q *queue) Add(r ctrl.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.names = append(q.names, r.Name)
}

// Row: spoke/addon/lease_controller_test.go:29
func TestOnlyChangesThatMatterWakeAnAddon(t *testing.T) {
	r := &Reconciler{LeaseGrace: 5 * time.Minute, Clock: clocktesting.NewFakePassiveClock(noon)}
	lease := func(at time.Time) *coordinationv1.Lease {
		renewed := metav1.NewMicroTime(at)
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	}
	fresh, fresher, stale := lease(noon.Add(-time.Minute)), lease(noon), lease(noon.Add(-time.Hour))
	watched := target{kind: kindLease, namespace: "ns", name: "hello"}
	tests := map[string]struct {
		before, after client.Object
		want          []string
	}{
		"the usual renewal does not":         {fresh, fresher, nil},
		"the first sight does":               {nil, fresh, []string{"hello"}},
		"its end does":                       {fresh, nil, []string{"hello"}},
		"a renewal after a long silence too": {stale, fresh, []string{"hello"}},
		"a step back does":                   {fresh, stale, []string{"hello"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := &queue{}
			w := newWatcher(nil, "c1", r.leaseMatters, r.Clock)
			w.queue = q
			w.want("hello", watched)
			w.want("other", target{kind: kindLease, namespace: "ns", name: "other"})
			w.wake(watched, tc.before, tc.after)
			assert.Equal(t, tc.want, q.names)
		})
	}
}

func TestWhatIsNotWantedAnyMoreIsNotKnown(t *testing.T) {
	w := newWatcher(nil, "c1", nil, nil)
	w.want("hello", target{kind: kindNamespace, name: "ns"})
	assert.Len(t, w.moved, 1)
	<-w.moved
	w.want("hello", target{kind: kindNamespace, name: "ns"})
	assert.Empty(t, w.moved, "the same again is no news")
	w.want("hello")
	assert.Len(t, w.moved, 1)
	assert.Empty(t, w.wanted)
	assert.Equal(t, sight{}, w.look(target{kind: kindNamespace, name: "ns"}))

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.run(ctx); close(done) }()
	cancel()
	<-done
}
