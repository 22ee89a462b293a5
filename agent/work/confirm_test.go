package work

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/names"
)

// GetCache implements cluster.Cluster.
func (s stubHub) GetCache() cache.Cache { return current{reader: s.client} }

type current struct {
	cache.Cache
	reader client.Reader
}

// Get implements cache.Cache.
func (c current) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return c.reader.Get(ctx, key, o)
}

// List implements cache.Cache.
func (c current) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return c.reader.List(ctx, list)
}

// losing is an agent that lost works at an instant of its own clock.
type losing struct {
	*testing.T
	*evictor
	at         time.Time
	hub, spoke client.Client
}

// lose returns an agent whose hub has a ManagedCluster with a confirmation, empty for none, and no works.
func lose(t *testing.T, at time.Time, confirmation string, works ...string) *losing {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, workv1.Install(scheme))
	require.NoError(t, clusterv1.Install(scheme))
	managed := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	if confirmation != "" {
		managed.Annotations = map[string]string{names.AnnotationConfirmEviction: confirmation}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(managed).WithStatusSubresource(managed).Build()
	spoke := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&workv1.AppliedManifestWork{}).Build()
	writer := &inventory.Writer{Client: spoke, Live: spoke, HubHash: "hash", AgentID: "agent"}
	l := &losing{T: t, at: at, hub: hub, spoke: spoke, evictor: &evictor{Reconciler: &Reconciler{
		AgentID: "agent", Cluster: "c", Clock: clock.RealClock{}, EvictionGrace: time.Hour, Missing: missing.Hold,
		Hub: stubHub{client: hub}, Spoke: stubHub{client: spoke}, parts: parts{notes: newNotes(), inventory: writer},
	}}}
	l.queues.applied = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	t.Cleanup(l.queues.applied.ShutDown)
	for _, name := range works {
		l.add(name)
	}
	return l
}

// add adds the AppliedManifestWork of a work.
func (l *losing) add(work string) {
	l.Helper()
	require.NoError(l, l.spoke.Create(l.Context(), &workv1.AppliedManifestWork{
		ObjectMeta: metav1.ObjectMeta{Name: l.inventory.Name(work), UID: types.UID("uid-" + work)},
		Spec:       l.inventory.Spec(work),
	}))
}

// applied is the AppliedManifestWork of a work.
func (l *losing) applied(work string) *workv1.AppliedManifestWork {
	l.Helper()
	applied, err := inventory.Read(l.Context(), l.spoke, l.inventory.Name(work))
	require.NoError(l, err)
	require.NotNil(l, applied)
	return applied
}

// pass decides about a work so long after its loss, and records what follows from it.
func (l *losing) pass(work string, later time.Duration) missing.Fate {
	l.Helper()
	now := l.at.Add(later)
	applied := l.applied(work)
	verdict, err := l.judge(l.Context(), applied, now)
	require.NoError(l, err)
	if verdict.fate < missing.Evicted {
		f := &facts{now: now, owner: watch.Owner{Applied: true, Name: applied.Name}, applied: applied}
		outcome := l.proceed(l.Context(), f, false, verdict)
		require.NoError(l, outcome.Err())
	}
	return verdict.fate
}

// says is the text of the condition of the ManagedCluster after a look at all works.
func (l *losing) says() string {
	l.Helper()
	outcome := l.look(l.Context())
	require.NoError(l, outcome.Err())
	var managed clusterv1.ManagedCluster
	require.NoError(l, l.hub.Get(l.Context(), types.NamespacedName{Name: "c"}, &managed))
	c := meta.FindStatusCondition(managed.Status.Conditions, names.ConditionWorksPresent)
	require.NotNil(l, c)
	return c.Message
}

// confirms writes a confirmation.
func (l *losing) confirms(value string) {
	l.Helper()
	var managed clusterv1.ManagedCluster
	require.NoError(l, l.hub.Get(l.Context(), types.NamespacedName{Name: "c"}, &managed))
	metav1.SetMetaDataAnnotation(&managed.ObjectMeta, names.AnnotationConfirmEviction, value)
	require.NoError(l, l.hub.Update(l.Context(), &managed))
}

// Shows: work/missing-confirmed
func TestAnInstantThatPassesConfirmsNothing(t *testing.T) {
	works := []string{"a", "b", "c", "d"}
	ahead := lose(t, epoch, epoch.Add(time.Hour).Format(time.RFC3339), works...)
	behind := lose(t, epoch.AddDate(-5, 0, 0), epoch.Format(time.RFC3339), works...)
	for _, name := range works {
		assert.Equal(t, missing.Held, ahead.pass(name, 0))
		assert.Equal(t, missing.Held, behind.pass(name, 0), "the clock of the cluster is five years behind")
	}
	for _, name := range works {
		assert.Equal(t, missing.Held, ahead.pass(name, 2*time.Hour), "the annotation was written ahead of time")
		assert.Equal(t, missing.Held, behind.pass(name, 6*365*24*time.Hour), "the clock is right again")
	}
}

// TestWhatAPersonConfirmedGoesAlsoWhenTheListGetsShorter has the works of a list go one after the other, and another
// one go missing meanwhile.
//
// Shows: work/missing-confirmed
func TestWhatAPersonConfirmedGoesAlsoWhenTheListGetsShorter(t *testing.T) {
	works := []string{"a", "b", "c", "d"}
	l := lose(t, epoch, "", works...)
	for _, name := range works {
		l.pass(name, 0)
	}
	given := regexp.MustCompile(names.AnnotationConfirmEviction + `=(\w+)`).FindStringSubmatch(l.says())
	require.Len(t, given, 2)
	l.confirms(given[1])
	for _, name := range works[:3] {
		assert.Equal(t, missing.Confirmed, l.pass(name, time.Minute))
	}
	assert.Equal(t, missing.Held, l.pass("a", time.Minute), "d would not be confirmed any more")
	assert.Equal(t, missing.Confirmed, l.pass("d", time.Minute))
	assert.Contains(t, l.says(), "no objects are held")
	assert.Equal(t, missing.Evicted, l.pass("a", time.Minute))
	require.NoError(t, l.spoke.Delete(t.Context(), l.applied("a")))
	l.add("e")
	assert.Equal(t, missing.Held, l.pass("e", time.Minute))
	for _, name := range works[1:] {
		assert.Equal(t, missing.Evicted, l.pass(name, 2*time.Minute))
	}
	assert.Contains(t, l.says(), "does not have 1 of")
	applied := l.applied("b")
	f := &facts{now: epoch, owner: watch.Owner{Applied: true, Name: applied.Name}, applied: applied}
	require.NoError(t, l.letGo(t.Context(), f))
	assert.Empty(t, l.applied("b").Annotations, "what comes back and goes missing again is not confirmed")
}
