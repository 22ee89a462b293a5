package work

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// What is held for days must survive a downgrade of the agent (or OCM's agent) as long as the grace period: that one
// knows evictionStartTime alone, and finds its grace over.
func TestWhatIsHeldSurvivesADowngradeForTheGracePeriod(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, workv1.Install(scheme))
	applied := &workv1.AppliedManifestWork{
		ObjectMeta: metav1.ObjectMeta{Name: "hash-w", UID: "u"},
		Spec:       workv1.AppliedManifestWorkSpec{HubHash: "hash", AgentID: "agent", ManifestWorkName: "w"},
	}
	spoke := fake.NewClientBuilder().WithScheme(scheme).WithObjects(applied).WithStatusSubresource(applied).Build()
	writer := &inventory.Writer{Client: spoke, Live: spoke, HubHash: "hash", AgentID: "agent"}
	r := &Reconciler{
		AgentID: "agent", Cluster: "c", Clock: clock.RealClock{}, EvictionGrace: time.Hour, Missing: missing.Hold,
		parts: parts{notes: newNotes(), inventory: writer},
	}
	e := &evictor{Reconciler: r}
	read, err := inventory.Read(context.Background(), spoke, "hash-w")
	require.NoError(t, err)
	f := &facts{now: time.Now(), owner: watch.Owner{Applied: true, Name: "hash-w"}, applied: read}
	require.NoError(t, e.hold(context.Background(), f))
	var after workv1.AppliedManifestWork
	require.NoError(t, spoke.Get(context.Background(), client.ObjectKey{Name: "hash-w"}, &after))
	require.True(t, inventory.IsHeld(&after))
	// The agent of before decides without a fate, three days later.
	got, _ := e.stageOf(&after, false, missing.Waits, f.now.Add(72*time.Hour))
	assert.Equal(t, stageStart, got, "its objects are deleted at once, without a grace period")
}

// 6. A hold is two writes. When the second fails, what is left on the cluster looks like a grace period that runs; if the
// others are stamped more than fifteen minutes later (missing: TestAHoldThatWasCutShortIsNoEviction), it ends.
func TestAHoldThatIsCutShortStartsNoGracePeriod(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, workv1.Install(scheme))
	applied := &workv1.AppliedManifestWork{
		ObjectMeta: metav1.ObjectMeta{Name: "hash-w", UID: "u"},
		Spec:       workv1.AppliedManifestWorkSpec{HubHash: "hash", AgentID: "agent", ManifestWorkName: "w"},
	}
	away := errors.New("the API server of the cluster is away")
	writes := 0
	spoke := fake.NewClientBuilder().WithScheme(scheme).WithObjects(applied).WithStatusSubresource(applied).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if writes++; writes > 1 {
					return away
				}
				return c.Patch(ctx, o, p, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				if writes++; writes > 1 {
					return away
				}
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		}).Build()
	r := &Reconciler{
		AgentID: "agent", Cluster: "c", Clock: clock.RealClock{}, EvictionGrace: time.Hour, Missing: missing.Hold,
		parts: parts{notes: newNotes(), inventory: &inventory.Writer{Client: spoke, Live: spoke, HubHash: "hash", AgentID: "agent"}},
	}
	read, err := inventory.Read(context.Background(), spoke, "hash-w")
	require.NoError(t, err)
	f := &facts{now: time.Now(), owner: watch.Owner{Applied: true, Name: "hash-w"}, applied: read}
	if err := (&evictor{Reconciler: r}).hold(context.Background(), f); err != nil {
		require.ErrorIs(t, err, away)
	}
	var after workv1.AppliedManifestWork
	require.NoError(t, spoke.Get(context.Background(), client.ObjectKey{Name: "hash-w"}, &after))
	assert.True(t, after.Status.EvictionStartTime == nil || inventory.IsHeld(&after))
}

// Shows: work/held-until-leaving
func TestWorksThatAreHeldGetAGracePeriodWhenTheClusterLeaves(t *testing.T) {
	for sentence, leaves := range map[string]bool{"it stays": false, "it leaves": true} {
		t.Run(sentence, func(t *testing.T) {
			r, f := backAt(t, 1, "a", "b")
			r.queues.applied = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
			defer r.queues.applied.ShutDown()
			lost := lostWork(r)
			require.NoError(t, r.inventory.Client.Create(t.Context(), lost))
			_, err := r.inventory.Hold(t.Context(), lost, f.now)
			require.NoError(t, err)
			if leaves {
				cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
				hub := r.Hub.GetClient()
				require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
				cluster.Finalizers = []string{"example.com/last"}
				require.NoError(t, hub.Update(t.Context(), cluster))
				require.NoError(t, hub.Delete(t.Context(), cluster))
			}
			e := &evictor{Reconciler: r}
			e.look(t.Context())
			if !leaves {
				assert.Zero(t, r.queues.applied.Len(), "nothing changed")
				return
			}
			require.Equal(t, 1, r.queues.applied.Len(), "no other event comes")
			f.applied, err = inventory.Read(t.Context(), r.inventory.Client, lost.Name)
			require.NoError(t, err)
			verdict, err := e.judge(t.Context(), f.applied, f.now)
			require.NoError(t, err)
			e.proceed(t.Context(), f, false, verdict)
			after, err := inventory.Read(t.Context(), r.inventory.Client, lost.Name)
			require.NoError(t, err)
			assert.NotNil(t, after.Status.EvictionStartTime)
		})
	}
}
