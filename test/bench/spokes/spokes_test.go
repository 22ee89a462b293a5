package spokes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// idle are clusters whose writers do not run.
func idle(t *testing.T, works ...*workv1.ManifestWork) *Spokes {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(fleet.Scheme()).WithStatusSubresource(&workv1.ManifestWork{})
	for _, w := range works {
		builder = builder.WithObjects(w)
	}
	s := &Spokes{
		client: builder.Build(), responder: NewResponder(),
		queue:   workqueue.NewTypedDelayingQueue[types.NamespacedName](),
		pending: map[types.NamespacedName]seen{}, reporting: map[string]map[string]bool{},
		meter: newMeter(1, time.Now()),
	}
	s.opts.Judge = func(*workv1.ManifestWork) Outcome { return Healthy }
	s.opts.Log = t.Output()
	t.Cleanup(s.queue.ShutDown)
	return s
}

func TestClustersInFlight(t *testing.T) {
	first, second := work(deployment, "deployments", "apps"), work(deployment, "deployments", "apps")
	second.Namespace = "c2"
	s := idle(t, first, second)
	handler := (*works)(s)
	handler.Replace(t.Context(), []*workv1.ManifestWork{first, second}, "1")
	handler.Update(t.Context(), first)
	assert.Equal(t, 2, s.Stats().MaxReporting)
	assert.Equal(t, 2, s.queue.Len(), "a work waits once")

	for range 2 {
		key, _ := s.queue.Get()
		s.answer(t.Context(), key)
		s.queue.Done(key)
	}
	stats := s.Stats()
	assert.Equal(t, 2, stats.MaxReporting, "both at the begin of this measurement")
	assert.Equal(t, 4, stats.Requests, "a finalizer and a status each")
	assert.Equal(t, 0, s.Stats().MaxReporting, "both have reported")

	var found workv1.ManifestWork
	require.NoError(t, s.client.Get(t.Context(), types.NamespacedName{Namespace: "c1", Name: "w"}, &found))
	assert.Contains(t, found.Finalizers, names.FinalizerManifestWork)
	assert.True(t, meta.IsStatusConditionTrue(found.Status.Conditions, workv1.WorkAvailable))
	handler.Update(t.Context(), &found)
	assert.Equal(t, 0, s.Stats().MaxReporting, "the answer comes back")
}

func TestAWorkThatIsGoneIsForgotten(t *testing.T) {
	w := work(deployment, "deployments", "apps")
	s := idle(t)
	handler := (*works)(s)
	handler.Update(t.Context(), w)
	key, _ := s.queue.Get()
	s.answer(t.Context(), key) // the API server does not know it
	assert.Empty(t, s.pending)
	handler.Delete(t.Context(), w)
	assert.Empty(t, s.reporting)
}

func TestASlowClusterAnswersLater(t *testing.T) {
	s := idle(t)
	s.Delay(time.Hour)
	(*works)(s).Update(t.Context(), work(deployment, "deployments", "apps"))
	assert.Equal(t, 0, s.queue.Len())
	gone := work(deployment, "deployments", "apps", names.FinalizerManifestWork)
	gone.Name, gone.DeletionTimestamp = "gone", &metav1.Time{Time: time.Now()}
	(*works)(s).Update(t.Context(), gone)
	assert.Equal(t, 1, s.queue.Len(), "a deletion does not wait")
}

func TestAvailableKeepsTheConditionsOfTheHub(t *testing.T) {
	c := managedCluster("c1", nil)
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue, Reason: "Accepted",
	})
	available(c, time.Now())
	for _, kind := range []string{
		clusterv1.ManagedClusterConditionHubAccepted, clusterv1.ManagedClusterConditionJoined,
		clusterv1.ManagedClusterConditionAvailable,
	} {
		assert.True(t, meta.IsStatusConditionTrue(c.Status.Conditions, kind), kind)
	}
}

func TestJoiningHandsOverEachAcceptedClusterOnce(t *testing.T) {
	j := &joining{left: map[string]bool{"c1": true}, ready: make(chan *clusterv1.ManagedCluster, 1)}
	c := managedCluster("c1", nil)
	j.Replace(t.Context(), []*clusterv1.ManagedCluster{c, managedCluster("other", nil)}, "1")
	assert.Empty(t, j.ready, "it is not accepted yet")
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue, Reason: "Accepted",
	})
	j.Update(t.Context(), c)
	j.Update(t.Context(), c)
	assert.Len(t, j.ready, 1)
}
