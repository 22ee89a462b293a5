package work

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/agent/work/offline"
	"github.com/spokelet/spokelet/internal/reconcile"
)

func TestAWorkIsLargeByItsManifestsOrItsRules(t *testing.T) {
	of := func(sizes ...int) *workv1.ManifestWork {
		w := &workv1.ManifestWork{}
		for _, size := range sizes {
			var m workv1.Manifest
			m.Raw = make([]byte, size)
			w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, m)
		}
		return w
	}
	assert.False(t, isLarge(of()))
	assert.False(t, isLarge(of(largeManifest, largeManifest, largeManifest)))
	assert.True(t, isLarge(of(1, largeManifest+1)))
	assert.True(t, isLarge(of(slices.Repeat([]int{largeManifest}, 5)...)))

	ruled := of(slices.Repeat([]int{1}, 40)...)
	rule := workv1.ConditionRule{CelExpressions: []string{strings.Repeat("x", 300)}, MessageExpression: strings.Repeat("y", 300)}
	ruled.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{ConditionRules: slices.Repeat([]workv1.ConditionRule{rule}, 10)}}
	assert.False(t, isLarge(ruled))
	ruled.Spec.ManifestConfigs[0].ConditionRules = slices.Repeat([]workv1.ConditionRule{rule}, 11)
	assert.True(t, isLarge(ruled), "each manifest may have all of them")
}

// largeHub has a large work.
type largeHub struct {
	cluster.Cluster
	c client.Client
}

func (h largeHub) GetClient() client.Client { return h.c }

func largeIn(t *testing.T, deleting bool) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, workv1.Install(scheme))
	f := workOf([]byte(configMap(strings.Repeat("a", largeManifest))))
	f.work.Namespace = "c1"
	if deleting {
		f.work.Finalizers, f.work.DeletionTimestamp = []string{workv1.ManifestWorkFinalizer}, new(metav1.NewTime(epoch))
	}
	r := lean()
	r.Cluster, r.Clock = "c1", clocktesting.NewFakePassiveClock(epoch)
	r.turns.Limit(1)
	r.Hub = largeHub{c: fake.NewClientBuilder().WithScheme(scheme).WithObjects(f.work).Build()}
	return r
}

func TestAPanicWhileALargeWorkIsObservedGivesItsTurnBack(t *testing.T) {
	r := largeIn(t, false)
	assert.Panics(t, func() { _, _ = r.Reconcile(t.Context(), r.request("w")) }, "there is no inventory here")
	assert.True(t, r.turns.Enter(r.request("other"), reconcile.Long))
}

func TestALargeWorkThatIsDeletedHasItsTurnToo(t *testing.T) {
	r := largeIn(t, true)
	require.True(t, r.turns.Enter(r.request("other"), reconcile.Long))
	result, err := r.Reconcile(t.Context(), r.request("w"))
	require.NoError(t, err)
	assert.Zero(t, result, "a request comes when it has its turn")
	assert.Equal(t, []ctrl.Request{r.request("w")}, r.turns.Leave(r.request("other")))
}

// TestALargeWorkHasItsTurnWithoutTheHubToo: what a work is counted as must not depend on where it is read.
func TestALargeWorkHasItsTurnWithoutTheHubToo(t *testing.T) {
	ruled := workOf(slices.Repeat([][]byte{[]byte(configMap("a"))}, 9)...).work
	rule := workv1.ConditionRule{CelExpressions: []string{strings.Repeat("x", 30<<10)}}
	ruled.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{ConditionRules: []workv1.ConditionRule{rule}}}
	for sentence, work := range map[string]*workv1.ManifestWork{
		"many bytes":         workOf([]byte(configMap(strings.Repeat("a", 80<<10)))).work,
		"one large manifest": workOf([]byte(configMap(strings.Repeat("a", 40<<10)))).work,
		"many rules":         ruled,
	} {
		t.Run(sentence, func(t *testing.T) {
			cache, err := offline.Open(t.Context(), copiesIn(t, "hash", "c1"))
			require.NoError(t, err)
			cache.Invalidate("w", work.UID, work.Generation)
			require.NoError(t, cache.Sync(t.Context(), work, "applied"))
			r := lean()
			r.Cluster, r.Clock, r.Cache, r.absence = "c1", clocktesting.NewFakePassiveClock(epoch), cache, &absence{}
			r.turns.Limit(1)
			require.True(t, r.turns.Enter(r.request("other"), reconcile.Long))
			f, err := r.observe(t.Context(), "w")
			require.NoError(t, err)
			assert.Equal(t, phaseUnknown, f.phase(), "an event of a hub that has not listed its works yet says nothing")
			r.absence.trusted.Store(true)
			f, err = r.observe(t.Context(), "w")
			require.NoError(t, err)
			assert.True(t, f.crowded)
			assert.Equal(t, []ctrl.Request{r.request("w")}, r.turns.Leave(r.request("other")))
			assert.Panics(t, func() { _, _ = r.observe(t.Context(), "w") }, "it goes on, and there is no inventory here")
		})
	}
}
