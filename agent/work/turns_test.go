package work

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

func TestLargeWorksLeaveWorkersToSmallOnes(t *testing.T) {
	c := turns{most: 2}
	require.True(t, c.enter("a", true))
	require.True(t, c.enter("b", true))
	assert.False(t, c.enter("c", true), "both turns are taken")
	assert.False(t, c.enter("c", true), "it waits")
	assert.False(t, c.enter("d", true))
	assert.True(t, c.enter("small", false), "a small work never waits")
	assert.Empty(t, c.leave("small"))
	assert.Equal(t, []string{"c"}, c.leave("a"))
	assert.False(t, c.enter("a", true), "one that comes again waits behind the others")
	require.True(t, c.enter("c", true), "it has its turn")
	assert.Equal(t, []string{"d"}, c.leave("b"))
	assert.Equal(t, []string{"a"}, c.leave("d"), "it is gone, and does not need the turn that is kept for it")
	require.True(t, c.enter("a", true))
	assert.False(t, c.enter("e", true))
	assert.True(t, c.enter("e", false), "it shrank")
	assert.Empty(t, c.leave("e"))
	assert.Empty(t, c.leave("a"))
	assert.Empty(t, c.leave("c"))
	assert.Empty(t, c.taken)
	var none turns
	assert.True(t, none.enter("a", true))
	assert.True(t, none.enter("b", true))
	assert.Empty(t, none.leave("a"))
}

// TestEveryWorkHasItsTurn plays the queue: works come, change, go, and come again as soon as their pass ends.
func TestEveryWorkHasItsTurn(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		const works, most = 12, 3
		c := turns{most: most}
		queued, running, waiting := []string{}, map[string]bool{}, map[string]int{}
		for i := range works {
			queued = append(queued, fmt.Sprint(i))
		}
		for step := range 5000 {
			if len(queued) > 0 && random.IntN(2) == 0 {
				name := queued[0]
				queued = queued[1:]
				if random.IntN(20) == 0 { // it is gone, and made again
					queued = append(append(queued, c.leave(name)...), name)
					delete(waiting, name)
					continue
				}
				if large := random.IntN(4) > 0; c.enter(name, large) {
					running[name] = large
					delete(waiting, name)
				} else if _, waits := waiting[name]; !waits {
					waiting[name] = step
				}
			} else if len(running) > 0 {
				var names []string
				for name := range running {
					names = append(names, name)
				}
				slices.Sort(names)
				name := names[random.IntN(len(names))]
				queued = append(append(queued, c.leave(name)...), name)
				delete(running, name)
			}
			taken := 0
			for _, large := range running {
				if large {
					taken++
				}
			}
			require.LessOrEqual(t, taken, most, "seed %d", seed)
			for name, since := range waiting {
				require.Less(t, step-since, 60*works, "seed %d: work %s has no turn", seed, name)
			}
		}
	}
}

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
	r.Cluster, r.Clock, r.turns.most = "c1", clocktesting.NewFakePassiveClock(epoch), 1
	r.Hub = largeHub{c: fake.NewClientBuilder().WithScheme(scheme).WithObjects(f.work).Build()}
	return r
}

func TestAPanicWhileALargeWorkIsObservedGivesItsTurnBack(t *testing.T) {
	r := largeIn(t, false)
	assert.Panics(t, func() { _, _ = r.Reconcile(t.Context(), r.request("w")) }, "there is no inventory here")
	assert.Empty(t, r.turns.taken)
}

func TestALargeWorkThatIsDeletedHasItsTurnToo(t *testing.T) {
	r := largeIn(t, true)
	require.True(t, r.turns.enter("other", true))
	result, err := r.Reconcile(t.Context(), r.request("w"))
	require.NoError(t, err)
	assert.Zero(t, result, "a request comes when it has its turn")
	assert.Equal(t, []string{"w"}, r.turns.leave("other"))
}

// TestAWorkThatWaitsForItsTurnKeepsItsBackOff: a pass that only finds that the work has to wait is no success.
func TestAWorkThatWaitsForItsTurnKeepsItsBackOff(t *testing.T) {
	c := &turns{most: 1}
	limiter := patient{workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Second, time.Hour), c}
	w := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "c1", Name: "w"}}
	require.Equal(t, time.Second, limiter.When(w))
	require.True(t, c.enter("other", true))
	require.False(t, c.enter("w", true))
	limiter.Forget(w)
	require.Equal(t, 2*time.Second, limiter.When(w), "it waits")
	require.Equal(t, []string{"w"}, c.leave("other"))
	limiter.Forget(w)
	require.Equal(t, 4*time.Second, limiter.When(w), "its turn is kept, and it has not passed yet")
	require.True(t, c.enter("w", true))
	c.leave("w")
	limiter.Forget(w)
	assert.Equal(t, time.Second, limiter.When(w), "it has passed")
}
