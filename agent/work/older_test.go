package work

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/internal/names"
)

// backAt is a work that is of an earlier generation than was applied: it has ConfigMap a, and of generation 3 are a and
// b. live is the generation that the hub has.
func backAt(t *testing.T, live int64, has ...string) (*Reconciler, *facts) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, workv1.Install(scheme))
	require.NoError(t, clusterv1.Install(scheme))
	raws := make([][]byte, len(has))
	for i, name := range has {
		raws[i] = []byte(configMap(name))
	}
	f := workOf(raws...)
	f.now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	f.work.Namespace = "c"
	applied := &workv1.AppliedManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Name: "hash-w", UID: "applied", Annotations: map[string]string{inventory.AnnotationGeneration: "u/3"},
		},
		Spec: workv1.AppliedManifestWorkSpec{HubHash: "hash", AgentID: "agent", ManifestWorkName: "w"},
		Status: workv1.AppliedManifestWorkStatus{
			AppliedResources: []workv1.AppliedManifestResourceMeta{entryOf("a", "1"), entryOf("b", "2")},
		},
	}
	onHub := f.work.DeepCopy()
	onHub.Generation = live
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	spoke := fake.NewClientBuilder().WithScheme(scheme).WithObjects(applied).WithStatusSubresource(applied).Build()
	r := lean()
	r.AgentID, r.Cluster, r.EvictionGrace, r.Missing = "agent", "c", time.Hour, missing.Hold
	r.Clock = testclock.NewFakePassiveClock(f.now)
	r.Hub = stubHub{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(onHub, cluster).Build()}
	r.Spoke = stubHub{client: spoke}
	r.inventory = &inventory.Writer{Client: spoke, Live: spoke, HubHash: "hash", AgentID: "agent"}
	f.manifests = readBy(t, r, f)
	var err error
	f.applied, err = inventory.Read(t.Context(), spoke, "hash-w")
	require.NoError(t, err)
	return r, f
}

// recorded is the AppliedManifestWork as it is stored.
func recorded(t *testing.T, r *Reconciler) *workv1.AppliedManifestWork {
	t.Helper()
	var stored workv1.AppliedManifestWork
	require.NoError(t, r.inventory.Client.Get(t.Context(), client.ObjectKey{Name: "hash-w"}, &stored))
	return &stored
}

// confirmed returns what a person writes on the ManagedCluster who reads how to confirm, after some change of it.
func confirmed(t *testing.T, r *Reconciler, f *facts, change func(value string) string) {
	t.Helper()
	lost, cluster, err := r.observeMissing(t.Context(), f.now)
	require.NoError(t, err)
	given := regexp.MustCompile(names.AnnotationConfirmEviction + `=(\w+)`).
		FindStringSubmatch(missing.Report(lost, missing.Decide(lost)))
	if given == nil {
		given = []string{"", ""}
	}
	cluster.Annotations = map[string]string{names.AnnotationConfirmEviction: change(given[1])}
	require.NoError(t, r.Hub.GetClient().Update(t.Context(), cluster))
}

// lostWork is the AppliedManifestWork of a work that the hub does not have.
func lostWork(r *Reconciler) *workv1.AppliedManifestWork {
	return &workv1.AppliedManifestWork{
		ObjectMeta: metav1.ObjectMeta{Name: r.inventory.Name("lost"), UID: "lost"},
		Spec:       workv1.AppliedManifestWorkSpec{HubHash: "hash", AgentID: "agent", ManifestWorkName: "lost"},
	}
}

// Shows: work/older-held
func TestWhatAnOlderWorkDoesNotHaveIsHeldUntilItIsThereOrConfirmed(t *testing.T) {
	says := func(value string) func(string) string { return func(string) string { return value } }
	for sentence, c := range map[string]struct {
		policy    missing.Policy
		has       []string
		confirm   func(string) string
		marked    bool
		wantsHeld bool
		// neverEvicts reports that no work is ever evicted, and one is missing.
		neverEvicts bool
	}{
		"it lacks an object":            {missing.Hold, []string{"a"}, says(""), true, true, false},
		"it lacks none":                 {missing.Hold, []string{"a", "b"}, says(""), false, false, false},
		"nothing is held, as with OCM":  {missing.Grace, []string{"a"}, says(""), false, false, false},
		"it was confirmed":              {missing.Hold, []string{"a"}, func(value string) string { return value }, true, false, false},
		"something else was confirmed":  {missing.Hold, []string{"a"}, says("0123456789ab"), true, true, false},
		"an instant confirms nothing":   {missing.Hold, []string{"a"}, says("2026-01-02T12:00:00Z"), true, true, false},
		"a longer value says no more":   {missing.Hold, []string{"a"}, func(value string) string { return value + "0" }, true, true, false},
		"a part of the value says less": {missing.Hold, []string{"a"}, func(value string) string { return value[1:] }, true, true, false},
		"no work is ever evicted":       {missing.Hold, []string{"a"}, says(""), true, true, true},
		"it was confirmed, without evictions": {
			missing.Hold, []string{"a"}, func(value string) string { return value }, true, false, true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			r, f := backAt(t, 1, c.has...)
			if r.Missing = c.policy; c.neverEvicts {
				r.EvictionGrace = EvictionDisabled
				require.NoError(t, r.inventory.Client.Create(t.Context(), lostWork(r)))
			}
			require.NoError(t, r.goBack(t.Context(), f))
			assert.Equal(t, c.marked, inventory.IsOlder(recorded(t, r)))
			assert.Equal(t, "u/1", recorded(t, r).Annotations[inventory.AnnotationGeneration],
				"what is applied from now on is the earlier generation")
			confirmed(t, r, f, c.confirm)
			held, err := r.keepsNewer(t.Context(), f)
			require.NoError(t, err)
			if c.marked {
				assert.True(t, held, "a confirmation is recorded first")
				held, err = r.keepsNewer(t.Context(), f)
				require.NoError(t, err)
			}
			assert.Equal(t, c.wantsHeld, held)
			assert.Equal(t, c.wantsHeld, inventory.IsOlder(recorded(t, r)))
			if !held {
				assert.Empty(t, inventory.Confirmed(recorded(t, r)))
			}
		})
	}
}

// Shows: work/older-held
func TestAnOlderWorkThatHasItsObjectsAgainHoldsNothing(t *testing.T) {
	r, f := backAt(t, 1, "a")
	require.NoError(t, r.goBack(t.Context(), f))
	again := workOf([]byte(configMap("a")), []byte(configMap("b")))
	again.work.Generation = 2 // as after the first edit of a restored hub, and still below what was applied once
	again.applied, again.now, again.manifests = f.applied, f.now, readBy(t, r, again)
	require.NoError(t, r.goBack(t.Context(), again))
	held, err := r.keepsNewer(t.Context(), again)
	require.NoError(t, err)
	assert.False(t, held)
	assert.False(t, inventory.IsOlder(recorded(t, r)))
}

// Shows: work/older-held
func TestACacheThatLagsIsNoRestoredHub(t *testing.T) {
	asks := func(live, generation int64) standing {
		r, f := backAt(t, live, "a")
		f.work.Generation = generation
		if live == 0 {
			r.Hub = stubHub{live: reader{context.DeadlineExceeded}}
		}
		r.checkHub(t.Context(), f)
		return f.standing
	}
	assert.Equal(t, standingBehind, asks(3, 1), "the hub has the generation that was applied")
	assert.Equal(t, standingConfirmed, asks(1, 1), "the hub itself went back")
	assert.Equal(t, standingUnanswered, asks(0, 1), "a hub that does not answer says nothing")
	assert.Equal(t, standingBelieved, asks(3, 4), "every edit makes a later generation")
}
