package addon

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/lease"
)

func labelsOf(o client.Object) labels.Set { return o.GetLabels() }

// recorded returns a state that appends what it reports to changes.
func recorded(changes *[][2]client.Object) *targetState {
	return &targetState{
		clock: clocktesting.NewFakePassiveClock(noon),
		changed: func(before, after client.Object) {
			*changes = append(*changes, [2]client.Object{before, after})
		},
	}
}

func TestATargetIsKnownFromItsFirstListWhileTheWatchWorks(t *testing.T) {
	var changes [][2]client.Object
	s := recorded(&changes)
	assert.Equal(t, observation{}, s.get(), "before the first answer nothing is known")

	s.Replace(t.Context(), nil, "")
	assert.Equal(t, observation{known: true}, s.get(), "absence is known, and reported")
	assert.Len(t, changes, 1)

	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	s.Update(t.Context(), l)
	assert.Equal(t, l, s.get().object)

	broken := errors.New("connection refused")
	s.answered(broken)
	assert.Equal(t, observation{cause: broken}, s.get(), "while the watch fails nothing is known")
	assert.Len(t, changes, 2)
	s.answered(nil)
	assert.True(t, s.get().known)
	assert.Len(t, changes, 3, "its recovery is reported")

	s.Delete(t.Context(), l)
	assert.Equal(t, observation{known: true}, s.get())
	s.Replace(t.Context(), []client.Object{l}, "")
	assert.Equal(t, l, s.get().object)
	assert.Equal(t, [2]client.Object{nil, l}, changes[len(changes)-1])
}

func TestATargetThatMayNotBeWatchedIsRefusedUntilItMay(t *testing.T) {
	var changes [][2]client.Object
	s := recorded(&changes)
	forbidden := apierrors.NewForbidden(coordinationv1.Resource("leases"), "hello", errors.New("no right"))
	s.answered(errors.New("connection refused"))
	assert.Empty(t, changes, "that passes by itself")
	s.answered(forbidden)
	s.answered(forbidden)
	assert.Len(t, changes, 1, "it is reported once")
	assert.Equal(t, observation{cause: forbidden, refused: forbidden}, s.get())

	s.answered(nil)
	s.Replace(t.Context(), nil, "")
	assert.Equal(t, observation{known: true}, s.get())
	s.answered(forbidden)
	assert.Equal(t, observation{cause: forbidden}, s.get(), "an API server that starts may refuse for a moment")
	assert.Len(t, changes, 2)
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

// Shows: registration/health-decided
func TestOnlyRelevantChangesEnqueueAnAddon(t *testing.T) {
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
		"the first observation does":         {nil, fresh, []string{"hello"}},
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
			w.enqueue(watched, tc.before, tc.after)
			assert.Equal(t, tc.want, q.names)
		})
	}
}

func TestATargetThatIsNoLongerWantedIsUnknown(t *testing.T) {
	w := newWatcher(nil, "c1", nil, nil)
	w.queue = &queue{}
	w.want("hello", target{kind: kindNamespace, name: "ns"})
	assert.Len(t, w.changed, 1)
	<-w.changed
	w.want("hello", target{kind: kindNamespace, name: "ns"})
	assert.Empty(t, w.changed, "the same again is no news")
	w.want("hello")
	assert.Len(t, w.changed, 1)
	assert.Empty(t, w.wanted)
	assert.Equal(t, observation{}, w.get(target{kind: kindNamespace, name: "ns"}))

	state := target{kind: kindNamespace, name: "ns"}
	w.want("hello", state)
	w.want("other", state)
	assert.Equal(t, []target{state}, w.targets(t.Context(), nil), "two add-ons share one watch")
	w.states[state].Replace(t.Context(), nil, "")
	assert.True(t, w.get(state).known)
	assert.Equal(t, []target{state}, w.targets(t.Context(), nil))
	assert.True(t, w.get(state).known, "the state of a running watch stays")
	w.want("hello")
	w.want("other")
	assert.Empty(t, w.targets(t.Context(), nil))
	assert.Equal(t, observation{}, w.get(state))

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.run(ctx); close(done) }()
	cancel()
	<-done
}

// Shows: registration/lease-forbidden
func TestALeaseThatMayNotBeWatchedAnyMoreIsReportedAfterTheGrace(t *testing.T) {
	var changes [][2]client.Object
	s, now := recorded(&changes), clocktesting.NewFakePassiveClock(noon)
	s.clock = now
	s.Replace(t.Context(), []client.Object{&coordinationv1.Lease{}}, "")
	forbidden := apierrors.NewForbidden(coordinationv1.Resource("leases"), "hello", errors.New("no"))
	s.answered(forbidden)
	assert.Equal(t, observation{cause: forbidden}, s.get(), "rights may be on their way")
	before := len(changes)
	now.SetTime(noon.Add(lease.AddonGrace - 1))
	s.answered(forbidden)
	assert.Len(t, changes, before)
	now.SetTime(noon.Add(lease.AddonGrace))
	s.answered(forbidden)
	assert.Equal(t, observation{cause: forbidden, refused: forbidden}, s.get())
	assert.Len(t, changes, before+1, "a pass reports it")
	s.answered(forbidden)
	assert.Len(t, changes, before+1, "once")
	s.answered(nil)
	assert.True(t, s.get().known)
	s.answered(forbidden)
	assert.Equal(t, observation{cause: forbidden}, s.get(), "a new grace")
}

// Shows: registration/waits-for-namespace
func TestANamespaceThatMayNotBeWatchedIsLookedAtAgain(t *testing.T) {
	at := place{side: sideAgent, namespace: "ns"}
	key := target{side: sideAgent, kind: kindNamespace, name: "ns"}
	r := &Reconciler{watch: &watcher{states: map[target]*targetState{}}}
	assert.Equal(t, reconcile.Outcome{}, r.awaitNamespace(at, noon), "the watch has not begun")
	var changes [][2]client.Object
	state := recorded(&changes)
	r.watch.states[key] = state
	state.answered(apierrors.NewForbidden(coordinationv1.Resource("namespaces"), "ns", errors.New("no")))
	assert.Len(t, changes, 1, "a pass follows")
	assert.Equal(t, reconcile.DoneUntil(noon.Add(time.Minute)), r.awaitNamespace(at, noon))
	state.Replace(t.Context(), nil, "")
	state.answered(nil)
	assert.Equal(t, reconcile.Outcome{}, r.awaitNamespace(at, noon), "the watch shows it")
}
