package work

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/offline"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// copiesIn is where an agent has its copies of works, for a hub and a cluster.
func copiesIn(t *testing.T, hub, cluster string) offline.Config {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	return offline.Config{
		Dir: t.TempDir(), Secrets: fake.NewClientBuilder().WithScheme(scheme).Build(), Namespace: "agent", HubHash: hub,
		Cluster: cluster,
	}
}

func TestACopyThatKnowsMoreThanTheHubIsNotUsedOnceItsWorkWasEdited(t *testing.T) {
	config := copiesIn(t, "hash", "c")
	cache, err := offline.Open(t.Context(), config)
	require.NoError(t, err)
	status := func(complete metav1.ConditionStatus) workv1.ManifestWorkStatus {
		return workv1.ManifestWorkStatus{ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			ResourceMeta: workv1.ManifestResourceMeta{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "ns", Name: "a"},
			Conditions:   []metav1.Condition{{Type: workv1.ManifestComplete, Status: complete, Reason: "ConditionRuleEvaluated"}},
		}}}}
	}
	r, f := backAt(t, 2, "a", "b") // objects a and b are tracked
	r.Cache = cache
	f.applied.Annotations[inventory.AnnotationGeneration] = "u/1" // what the copier recorded
	require.NoError(t, r.inventory.Client.Update(t.Context(), f.applied))
	f.work.Status = status(metav1.ConditionFalse)
	cache.Invalidate("w", "u", 1)
	require.NoError(t, cache.Sync(t.Context(), f.work, "applied"))
	known, err := cache.Load(t.Context(), "w")
	require.NoError(t, err)
	complete := status(metav1.ConditionTrue)
	require.NoError(t, cache.SaveStatus(known, &complete))

	// The hub is back, with generation 2. This is Reconcile up to the point where objects are written.
	edited := *f.work
	edited.Generation = 2
	f.work = &edited
	f.manifests = readBy(t, r, f)
	require.NoError(t, r.recall(t.Context(), f))
	r.invalidateCopy(f, phaseApply)
	require.NoError(t, r.record(t.Context(), f, []workv1.AppliedManifestResourceMeta{}))
	require.NoError(t, r.recordGeneration(t.Context(), f))
	// act writes generation 2 here; publishing fails; crash. A new process without the hub:
	again, err := offline.Open(t.Context(), config)
	require.NoError(t, err)
	found, err := again.Load(t.Context(), "w")
	require.NoError(t, err)
	require.NotNil(t, found, "the completion must survive")
	assert.EqualValues(t, 1, found.Work.Generation)
	assert.NotEmpty(t, unusable(recorded(t, r), found, r.inventory.Spec("w")),
		"generation 2 was applied, so the copy of generation 1 must not be put into force")
}

func TestWhatWasLearnedAndDoesNotCountAnyMoreIsForgotten(t *testing.T) {
	cache, err := offline.Open(t.Context(), copiesIn(t, "hub", "c1"))
	require.NoError(t, err)
	status := func(conditions ...metav1.Condition) workv1.ManifestWorkStatus {
		return workv1.ManifestWorkStatus{ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			ResourceMeta: workv1.ManifestResourceMeta{Version: "v1", Kind: "Job", Resource: "jobs", Namespace: "ns", Name: "j"},
			Conditions:   conditions,
		}}}}
	}
	atHub := factsOf("w").work
	atHub.Status = status()
	cache.Invalidate("w", atHub.UID, 0)
	require.NoError(t, cache.Sync(t.Context(), atHub, "applied"))
	known, err := cache.Load(t.Context(), "w")
	require.NoError(t, err)
	complete := status(metav1.Condition{Type: workv1.ManifestComplete, Status: "True", Reason: "ConditionRuleEvaluated"})
	require.NoError(t, cache.SaveStatus(known, &complete))
	r := publishing(func(context.Context, string) error { return nil })
	r.Cache = cache
	defer r.queues.works.ShutDown()
	f := &facts{now: time.Now(), owner: watch.Owner{Name: "w"}, work: atHub}
	require.NoError(t, r.recall(t.Context(), f))
	require.NotNil(t, f.atHub)
	r.publishStatus(t.Context(), f, status()) // what the pass concludes: the manifest has no rule
	learned, err := cache.UnreportedStatus(t.Context(), "w", atHub.UID)
	require.NoError(t, err)
	assert.Nil(t, learned, "or no copy is written any more, in no later pass")
}

// TestWhatWasLearnedIsReadWithinTheRoom: an agent starts again, and the hub is back. Ten works with copies of 700 KB
// would be decoded at once.
func TestWhatWasLearnedIsReadWithinTheRoom(t *testing.T) {
	config := copiesIn(t, "hash", "c")
	work := workOf([]byte(configMap("a"))).work
	rule := workv1.FeedbackRule{JsonPaths: slices.Repeat([]workv1.JsonPath{{Name: "a", Path: ".b"}}, 30_000)}
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{FeedbackRules: []workv1.FeedbackRule{rule}}}
	cache, err := offline.Open(t.Context(), config)
	require.NoError(t, err)
	cache.Invalidate("w", work.UID, work.Generation)
	require.NoError(t, cache.Sync(t.Context(), work, "applied"))
	known, err := cache.Load(t.Context(), "w")
	require.NoError(t, err)
	learned := workv1.ManifestWorkStatus{ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
		ResourceMeta: workv1.ManifestResourceMeta{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "ns", Name: "a"},
		Conditions:   []metav1.Condition{{Type: workv1.ManifestComplete, Status: "True", Reason: "ConditionRuleEvaluated"}},
	}}}}
	require.NoError(t, cache.SaveStatus(known, &learned))

	r := lean()
	r.Cache, err = offline.Open(t.Context(), config)
	require.NoError(t, err)
	assert.Greater(t, r.Cache.Unread("w", work.UID), 700_000)
	assert.Zero(t, r.Cache.Unread("w", "another"))
	room := spoke.NewRoom()
	f := &facts{now: epoch, owner: watch.Owner{Name: "w"}, work: work, room: room.Pass()}
	ended, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, room.Decode(t.Context(), 2<<20, func() { // another pass has all of it
		require.ErrorIs(t, r.recall(ended, f), context.Canceled, "it waits")
	}))
	require.NoError(t, r.recall(t.Context(), f))
	require.NotNil(t, f.learned)
	assert.Zero(t, r.Cache.Unread("w", work.UID), "it is known now")
}
