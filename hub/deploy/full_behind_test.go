package deploy

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/intern"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// While the pre-delete hook of the add-on runs, its other works are kept as they should be.
//
// Shows: hub/moving-objects
func TestAWorkWithoutRoomIsReducedWhileAHookRuns(t *testing.T) {
	f, hub := fullWork(t)
	f.rendering.Objects = append(f.rendering.Objects, hookJob())
	at := metav1.NewTime(time.Unix(940, 0))
	f.addOn.DeletionTimestamp, f.addOn.Finalizers = &at, []string{finalizerHook}
	leaving := deletionFacts{facts: f, ours: true, managed: true}
	p := decideDeletion(leaving)
	require.True(t, p.waits)
	var steps []workStep
	for _, s := range p.works {
		if s.Before != nil && s.Before.Name == "addon-a-deploy-0" {
			steps = append(steps, s)
		}
	}
	require.Len(t, steps, 1, "the full work gives away what others have applied")

	r := &Reconciler{Client: hub, Live: hub, AddOns: addonapi.Client{Client: hub}}
	_ = r.actOnDeletion(t.Context(), leaving, deletionPlan{works: steps, waits: true}, nil)
	live := &workv1.ManifestWork{}
	require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(steps[0].Before), live))
	for _, m := range live.Spec.Workload.Manifests {
		assert.Contains(t, string(m.Raw), `"kind":"ConfigMap"`, "what is sent is no manifest, so that the API server refuses it")
	}
}

// The cluster reports on one work at the moment in which the hub manager writes another one, and the next pass begins
// before the cache has that write.
//
// Shows: hub/moving-objects
func TestNoObjectLeavesAllWorksByWhatOnlyTheCacheHas(t *testing.T) {
	small := []*unstructured.Unstructured{configMap("x", 20_000), configMap("a", 250_000), configMap("b", 100_000)}
	f, _ := simulate(t, factsOf(small...))
	f.works[0].Generation = 1
	f.rendering.Objects = []*unstructured.Unstructured{small[0], configMap("a", 390_000), configMap("b", 200_000)}
	report := func(f facts) facts {
		f = applied(f)
		for _, work := range f.works {
			if work.Name == "addon-a-deploy-1" || work.Name == "addon-a-deploy-2" {
				refusedBut(work, "x")
			}
		}
		return f
	}
	for range 3 {
		f, _ = simulate(t, report(f))
	}
	f = report(f)
	require.Equal(t, map[string][]string{
		"addon-a-deploy-0": {"x", "a", "b"}, "addon-a-deploy-1": {"a"}, "addon-a-deploy-2": {"b"}, "addon-a-deploy-3": {"x"},
	}, func() map[string][]string {
		// What the full work gives away is not written yet.
		full := f.works[0].DeepCopy()
		first, _ := simulate(t, factsOf(small...))
		full.Spec = first.works[0].Spec
		for i, work := range f.works {
			if work.Name == "addon-a-deploy-0" {
				full.ObjectMeta, full.Status = *work.ObjectMeta.DeepCopy(), *work.Status.DeepCopy()
				full.Annotations = first.works[0].Annotations
				f.works[i] = full
			}
		}
		return layout(f.works)
	}())
	f.addOn.ResourceVersion = "1"
	hub := cacheOrHub(t, interceptor.Funcs{
		Patch: func(
			ctx context.Context, hub client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption,
		) error {
			if err := hub.Patch(ctx, o, patch, opts...); err != nil {
				return err
			}
			o.SetGeneration(o.GetGeneration() + 1)
			return hub.Update(ctx, o)
		},
	}, addonapi.AddOnToAlpha(f.addOn), f.cluster)
	cache := func() {
		for i, work := range f.works {
			work = work.DeepCopy()
			require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(work), work))
			_, err := works.Trim(&intern.Table{})(work)
			require.NoError(t, err)
			f.works[i] = work
		}
	}
	for _, work := range f.works {
		work.ResourceVersion, work.UID = "", types.UID(work.Name)
		require.NoError(t, hub.Create(t.Context(), work.DeepCopy()))
	}
	cache()
	r := &Reconciler{Client: hub, Live: hub, AddOns: addonapi.Client{Client: hub}}
	pass := func() map[string]reconcile.Verb {
		planned, err := planWorks(f)
		require.NoError(t, err)
		behind, err := isStale(r.stale(t.Context(), f, plan{works: planned.steps}))
		require.NoError(t, err)
		if behind {
			return nil
		}
		r.act(t.Context(), f, plan{works: planned.steps})
		return verbsOf(planned.steps)
	}
	// The cluster has applied a by now, which the first pass has not seen.
	next := f.works
	for i, work := range next {
		if work.Name == "addon-a-deploy-1" {
			live := &workv1.ManifestWork{}
			require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(work), live))
			refusedBut(live, "a", "b", "x")
			require.NoError(t, hub.Update(t.Context(), live))
			seen := live.DeepCopy()
			_, err := works.Trim(&intern.Table{})(seen)
			require.NoError(t, err)
			later := append([]*workv1.ManifestWork{}, next...)
			later[i] = seen
			require.Len(t, pass(), 1)
			f.works = later
			assert.Nil(t, pass(), "the cache is behind")
			break
		}
	}
	var all workv1.ManifestWorkList
	require.NoError(t, hub.List(t.Context(), &all))
	has := map[string]bool{}
	for i := range all.Items {
		for _, id := range works.ReadAll(&all.Items[i]) {
			has[id.Name] = true
		}
	}
	assert.True(t, has["x"], "no work has x any more, so that it is deleted on the cluster")
}
