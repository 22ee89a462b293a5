package deploy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/health"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/intern"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// configMap is a ConfigMap whose JSON has about the given number of bytes.
func configMap(name string, bytes int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "ns"},
		"data": map[string]any{"k": strings.Repeat("x", bytes)},
	}}
}

func factsOf(objects ...*unstructured.Unstructured) facts {
	return facts{
		now: time.Unix(1000, 0), relevant: true,
		addOn: &addonv1beta1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "addon-uid"},
		},
		cluster: &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		},
		about: addon.About{Name: "a"}, account: names.NamespaceHub + "/" + names.ServiceAccountAddons,
		answers: answers{
			rendering: addon.Rendering{Objects: objects}, setup: addon.Setup{Health: addon.HealthWorkloads},
		},
	}
}

// run does a plan of works in memory and returns the works afterwards.
func simulate(t *testing.T, f facts) (facts, []workStep) {
	t.Helper()
	planned, err := planWorks(f)
	steps, kept := planned.steps, planned.kept
	require.NoError(t, err)
	after := append([]*workv1.ManifestWork{}, kept...)
	for _, s := range steps {
		if s.Verb != reconcile.Delete {
			s.After.UID = "set"
			after = append(after, s.After)
		}
	}
	for _, work := range f.works {
		if !setOf(f, works.Managed, works.Deploy).Has(work) && !setOf(f, works.Hosting, works.Deploy).Has(work) {
			after = append(after, work)
		}
	}
	f.works = after
	return f, steps
}

// layout is which objects are in which work.
func layout(present []*workv1.ManifestWork) map[string][]string {
	all := map[string][]string{}
	for _, work := range present {
		all[work.Name] = []string{}
		for _, id := range works.ReadAll(work) {
			all[work.Name] = append(all[work.Name], id.Name)
		}
	}
	return all
}

// Shows: hub/laid-out
func TestWorksAreLaidOut(t *testing.T) {
	tests := map[string]struct {
		// before and after are two renderings.
		before, after []*unstructured.Unstructured
		// between changes what is there in between.
		between     func(t *testing.T, f *facts)
		first, then map[string][]string
		// held is the layout until the works are applied; nil when it is the final one.
		held map[string][]string
	}{
		"a few objects are one work, in their order": {
			before: []*unstructured.Unstructured{configMap("b", 1), configMap("a", 100), configMap("c", 10)},
			first:  map[string][]string{"addon-a-deploy-0": {"b", "a", "c"}},
		},
		"what is too much for one work goes to the next": {
			before: []*unstructured.Unstructured{configMap("a", 200_000), configMap("b", 200_000), configMap("c", 200_000)},
			first:  map[string][]string{"addon-a-deploy-0": {"a", "b"}, "addon-a-deploy-1": {"c"}},
		},
		"an object stays where it is": {
			before: []*unstructured.Unstructured{configMap("a", 200_000), configMap("b", 200_000), configMap("c", 200_000)},
			after:  []*unstructured.Unstructured{configMap("c", 200_000), configMap("d", 1)},
			first:  map[string][]string{"addon-a-deploy-0": {"a", "b"}, "addon-a-deploy-1": {"c"}},
			then:   map[string][]string{"addon-a-deploy-0": {"d"}, "addon-a-deploy-1": {"c"}},
		},
		"a work without objects goes, and its number is used again": {
			before: []*unstructured.Unstructured{configMap("a", 400_000), configMap("b", 400_000), configMap("c", 400_000)},
			after: []*unstructured.Unstructured{
				configMap("a", 400_000), configMap("c", 400_000), configMap("d", 400_000), configMap("e", 400_000),
			},
			between: func(t *testing.T, f *facts) {
				t.Helper()
				f.works = []*workv1.ManifestWork{f.works[0], f.works[2]}
			},
			first: map[string][]string{"addon-a-deploy-0": {"a"}, "addon-a-deploy-1": {"b"}, "addon-a-deploy-2": {"c"}},
			then: map[string][]string{
				"addon-a-deploy-0": {"a"}, "addon-a-deploy-2": {"c"}, "addon-a-deploy-1": {"d"}, "addon-a-deploy-3": {"e"},
			},
		},
		"no objects, no works": {
			before: []*unstructured.Unstructured{configMap("a", 1)},
			after:  []*unstructured.Unstructured{},
			first:  map[string][]string{"addon-a-deploy-0": {"a"}},
			then:   map[string][]string{},
		},
		"an object that grew too large for its work moves": {
			before: []*unstructured.Unstructured{configMap("a", 200_000), configMap("b", 1000)},
			after:  []*unstructured.Unstructured{configMap("a", 200_000), configMap("b", 300_000)},
			first:  map[string][]string{"addon-a-deploy-0": {"a", "b"}},
			held:   map[string][]string{"addon-a-deploy-0": {"a", "b"}, "addon-a-deploy-1": {"b"}},
			then:   map[string][]string{"addon-a-deploy-0": {"a"}, "addon-a-deploy-1": {"b"}},
		},
		"an object that no longer fits where it was stays there as it was until it is applied elsewhere": {
			before: []*unstructured.Unstructured{configMap("b", 1000), configMap("a", 400_000)},
			after:  []*unstructured.Unstructured{configMap("b", 200_000), configMap("a", 400_000), configMap("c", 1)},
			first:  map[string][]string{"addon-a-deploy-0": {"b", "a"}},
			held:   map[string][]string{"addon-a-deploy-0": {"b", "a"}, "addon-a-deploy-1": {"a", "c"}},
			then:   map[string][]string{"addon-a-deploy-0": {"b"}, "addon-a-deploy-1": {"a", "c"}},
		},
		"what is held and not wanted any more goes at once": {
			before: []*unstructured.Unstructured{configMap("a", 200_000), configMap("b", 1000)},
			after:  []*unstructured.Unstructured{configMap("b", 300_000)},
			between: func(t *testing.T, f *facts) {
				t.Helper()
				f.rendering.Objects = []*unstructured.Unstructured{configMap("a", 200_000), configMap("b", 300_000)}
				*f, _ = simulate(t, *f)
			},
			first: map[string][]string{"addon-a-deploy-0": {"a", "b"}},
			held:  map[string][]string{"addon-a-deploy-0": {"b"}, "addon-a-deploy-1": {"b"}},
			then:  map[string][]string{"addon-a-deploy-1": {"b"}},
		},
		"a new version of an API is the same object": {
			before: []*unstructured.Unstructured{configMap("a", 1)},
			after: func() []*unstructured.Unstructured {
				u := configMap("a", 1)
				u.SetAPIVersion("v2")
				return []*unstructured.Unstructured{u}
			}(),
			first: map[string][]string{"addon-a-deploy-0": {"a"}},
			then:  map[string][]string{"addon-a-deploy-0": {"a"}},
		},
		"works of others are left alone, and their numbers": {
			before: []*unstructured.Unstructured{},
			after:  []*unstructured.Unstructured{configMap("a", 1)},
			between: func(t *testing.T, f *facts) {
				t.Helper()
				f.works = []*workv1.ManifestWork{
					{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "addon-a-deploy-0"}},
					{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "mine"}},
				}
			},
			first: map[string][]string{},
			then:  map[string][]string{"addon-a-deploy-0": {}, "mine": {}, "addon-a-deploy-1": {"a"}},
		},
		"objects of a work that is being deleted wait until it is gone": {
			before: []*unstructured.Unstructured{configMap("a", 1)},
			after:  []*unstructured.Unstructured{configMap("a", 1), configMap("b", 1)},
			between: func(t *testing.T, f *facts) {
				t.Helper()
				f.works[0].DeletionTimestamp = &metav1.Time{Time: f.now}
			},
			first: map[string][]string{"addon-a-deploy-0": {"a"}},
			then:  map[string][]string{"addon-a-deploy-0": {"a"}, "addon-a-deploy-1": {"b"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := simulate(t, factsOf(test.before...))
			assert.Equal(t, test.first, layout(f.works))
			again, steps := simulate(t, f)
			assert.Empty(t, steps, "the second pass has nothing to do")
			assert.Equal(t, test.first, layout(again.works))
			if test.after == nil {
				return
			}
			if test.between != nil {
				test.between(t, &f)
			}
			f.rendering.Objects = test.after
			f, _ = simulate(t, f)
			if test.held != nil {
				assert.Equal(t, test.held, layout(f.works))
				again, steps = simulate(t, f)
				assert.Empty(t, steps, "while nothing is applied, the next pass has nothing to do")
				f, _ = simulate(t, applied(again))
			}
			assert.Equal(t, test.then, layout(f.works))
			_, steps = simulate(t, f)
			assert.Empty(t, steps, "the pass after the change has nothing to do")
		})
	}
}

// applied returns the facts after the agents applied all works.
func applied(f facts) facts {
	f.works = slices.Clone(f.works)
	for i, work := range f.works {
		f.works[i] = work.DeepCopy()
		f.works[i].Status.Conditions = []metav1.Condition{{
			Type: workv1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: work.Generation,
		}}
	}
	return f
}

// TestLayoutProperties: whatever objects come and go, each wanted object is in exactly one work when all are applied, no
// write takes it from all works before, no work is too large or empty, and the next pass has nothing to do.
//
// Shows: hub/moving-objects
func TestLayoutProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	f := factsOf()
	for round := range 40 {
		var objects []*unstructured.Unstructured
		for i := range 12 {
			if random.IntN(3) > 0 {
				objects = append(objects, configMap(fmt.Sprintf("o%d", i), random.IntN(150_000)))
			}
		}
		f.rendering.Objects = objects
		before := layout(f.works)
		f = settled(t, f)
		seen := map[string]string{}
		for _, work := range f.works {
			bytes := 0
			for _, m := range work.Spec.Workload.Manifests {
				bytes += len(m.Raw)
			}
			require.LessOrEqual(t, bytes, works.MaxBytes, "round %d", round)
			require.NotEmpty(t, work.Spec.Workload.Manifests)
		}
		for work, objects := range layout(f.works) {
			for _, name := range objects {
				require.Empty(t, seen[name], "%s is in two works", name)
				seen[name] = work
			}
		}
		require.Len(t, seen, len(objects))
		_, steps := simulate(t, f)
		require.Empty(t, steps, "round %d, before %v", round, before)
	}
}

// settled plans and applies works until nothing is left to write. Each write is done alone, in the order of the plan:
// whatever a work had and is wanted is in some work afterwards, and a work that has it is applied while another one
// gives it up.
func settled(t *testing.T, f facts) facts {
	t.Helper()
	wanted := map[string]bool{}
	for _, object := range f.rendering.Objects {
		wanted[object.GetName()] = true
	}
	for range 5 {
		next, steps := simulate(t, f)
		if len(steps) == 0 {
			return f
		}
		before, after := layout(f.works), layout(next.works)
		for _, step := range steps {
			if step.Verb == reconcile.Create {
				continue
			}
			for _, name := range before[step.Before.Name] {
				others := slices.Clone(after[step.Before.Name])
				for work, objects := range before {
					if work != step.Before.Name {
						others = append(others, objects...)
					}
				}
				require.True(t, !wanted[name] || slices.Contains(others, name), "a write of %s takes %s", step.Before.Name, name)
			}
		}
		f = applied(next)
	}
	require.Fail(t, "the works do not settle")
	return f
}

// fullWork returns the facts of an add-on whose first work has no room for the new versions of its objects, and gives
// them to others, of which the cluster refuses b and c, with the hub that has the works. The cache has their digests.
func fullWork(t *testing.T) (f facts, hub client.WithWatch) {
	t.Helper()
	f, _ = simulate(t, factsOf(configMap("a", 10), configMap("b", 10), configMap("c", 10), configMap("d", 10)))
	f.works[0].Generation = 1
	f.rendering.Objects = []*unstructured.Unstructured{
		configMap("a", 400_000), configMap("b", 400_000), configMap("c", 300_000), configMap("d", 10),
	}
	f, _ = simulate(t, applied(f))
	for i, work := range f.works[1:] {
		f.works[1+i] = work.DeepCopy()
		refusedBut(f.works[1+i], "a", "d")
	}
	f, _ = simulate(t, f)
	hub = cacheOrHub(t, interceptor.Funcs{})
	for i, work := range f.works {
		work = work.DeepCopy()
		if work.Name != "addon-a-deploy-0" {
			refusedBut(work, "a", "d")
		}
		work.ResourceVersion = ""
		require.NoError(t, hub.Create(t.Context(), work))
		_, err := works.Trim(&intern.Table{})(work)
		require.NoError(t, err)
		f.works[i] = work
	}
	return f, hub
}

// The cluster refuses two objects that their work passes on, and beside which it has no room for the new versions. What
// other works have applied, this work gives up, and it keeps the others as they are.
//
// Shows: hub/moves-end
func TestAWorkWithoutRoomKeepsTheManifestsOfRefusedObjects(t *testing.T) {
	for sentence, moved := range map[string]bool{"the cache is up to date": false, "the work changed meanwhile": true} {
		t.Run(sentence, func(t *testing.T) {
			f, hub := fullWork(t)
			planned, err := planWorks(f)
			require.NoError(t, err)
			t.Log(layout(f.works), planned.waits)
			require.Len(t, planned.steps, 1)
			assert.Contains(t, planned.waits[works.Managed][0], "ConfigMap ns/b, ConfigMap ns/c until the new ones are applied")
			live := &workv1.ManifestWork{}
			key := client.ObjectKeyFromObject(planned.steps[0].Before)
			require.NoError(t, hub.Get(t.Context(), key, live))
			before := layout([]*workv1.ManifestWork{live})
			if moved {
				live.Labels["x"] = "y"
				require.NoError(t, hub.Update(t.Context(), live))
			}

			r := &Reconciler{Client: hub, Live: hub}
			done := r.act(t.Context(), f, plan{works: planned.steps})
			require.NoError(t, hub.Get(t.Context(), key, live))
			if moved {
				assert.True(t, reconcile.IsLostRace(done.works[0]), done.works[0])
				assert.Equal(t, before, layout([]*workv1.ManifestWork{live}))
				return
			}
			require.NoError(t, done.works[0])
			assert.Equal(t, map[string][]string{"addon-a-deploy-0": {"b", "c"}}, layout([]*workv1.ManifestWork{live}))
			for _, m := range live.Spec.Workload.Manifests {
				assert.Contains(t, string(m.Raw), `{"k":"xxxxxxxxxx"}`, "as it was")
			}
		})
	}
}

// refusedBut lets a cluster refuse all objects of a work but some.
func refusedBut(work *workv1.ManifestWork, but ...string) {
	status, generation := metav1.ConditionTrue, work.Generation
	work.Status = workv1.ManifestWorkStatus{}
	for _, o := range works.ReadAll(work) {
		one := condition(workv1.ManifestApplied, metav1.ConditionTrue, generation, "")
		if !slices.Contains(but, o.Name) {
			one.Status, status = metav1.ConditionFalse, metav1.ConditionFalse
		}
		work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name},
			Conditions:   []metav1.Condition{one},
		})
	}
	work.Status.Conditions = []metav1.Condition{condition(workv1.WorkApplied, status, generation, "")}
}

// Shows: hub/splitting
func TestWorksThatCannotBePlanned(t *testing.T) {
	tests := map[string]struct {
		facts facts
		want  string
	}{
		"an object that no work can hold": {
			factsOf(configMap("small", 1), configMap("large", 500_000)),
			"ConfigMap ns/large has 500099 bytes, and a ManifestWork takes no more than 409600: make it smaller or split it",
		},
		"an object with an unknown place in hosted mode": {
			func() facts {
				f := factsOf(configMap("a", 1))
				f.addOn.Annotations = map[string]string{names.AnnotationHostingCluster: "host"}
				f.rendering.Objects[0].SetAnnotations(map[string]string{names.AnnotationHostedLocation: "moon"})
				return f
			}(),
			`ConfigMap ns/a has location "moon" (addon.open-cluster-management.io/hosted-manifest-location), which must be ` +
				"managed, hosting or none",
		},
		"works of an earlier add-on": {
			func() facts {
				f := factsOf(configMap("a", 1))
				earlier := f.addOn.DeepCopy()
				earlier.UID = "earlier"
				f.works = []*workv1.ManifestWork{{ObjectMeta: metav1.ObjectMeta{
					Namespace: "c1", Name: "addon-a-deploy-3", OwnerReferences: []metav1.OwnerReference{controlledBy(earlier)},
				}}}
				return f
			}(),
			"waiting until the ManifestWorks of an earlier add-on a are gone: addon-a-deploy-3",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			planned, err := planWorks(test.facts)
			require.EqualError(t, err, test.want)
			assert.Empty(t, planned)
		})
	}
}

func TestWorkIsAsTheContractSays(t *testing.T) {
	account := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{
			"name": "sa", "namespace": "ns", "annotations": map[string]any{"addon.open-cluster-management.io/deletion-orphan": ""},
		},
	}}
	f := factsOf(account)
	f.rendering.Configs = []addon.ChosenConfig{
		{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "g.io", Resource: "things"},
			ConfigSpecHash: addonv1beta1.ConfigSpecHash{
				ConfigReferent: addonv1beta1.ConfigReferent{Namespace: "n", Name: "x"}, SpecHash: "h1",
			},
		},
		{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{Resource: "configmaps"},
			ConfigSpecHash:      addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: "y"}, SpecHash: "h2"},
		},
	}
	planned, err := planWorks(f)
	require.NoError(t, err)
	steps := planned.steps
	require.Len(t, steps, 1)
	raw, err := json.Marshal(account.Object)
	require.NoError(t, err)
	work := steps[0].After
	assert.Equal(t, metav1.ObjectMeta{
		Namespace: "c1", Name: "addon-a-deploy-0",
		Labels: map[string]string{"open-cluster-management.io/addon-name": "a"},
		Annotations: map[string]string{
			"open-cluster-management.io/config-spec-hash": `{"configmaps//y":"h2","things.g.io/n/x":"h1"}`,
			names.AnnotationRenderedFrom:                  work.Annotations[names.AnnotationRenderedFrom],
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ManagedClusterAddOn", Name: "a", UID: "addon-uid",
			Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}, work.ObjectMeta)
	require.Len(t, work.Spec.Workload.Manifests, 1)
	assert.JSONEq(t, string(raw), string(work.Spec.Workload.Manifests[0].Raw))
	assert.Equal(t, &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
		SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{
			{Resource: "serviceaccounts", Namespace: "ns", Name: "sa"},
		}},
	}, work.Spec.DeleteOption)
	assert.Nil(t, work.Spec.Executor)
}

// pass says what a pass with a version of the code does about the works: whether it renders, and what it writes. It
// returns the facts of the next pass.
func pass(t *testing.T, f facts, version string) (next facts, renders bool, steps []workStep) {
	t.Helper()
	f.by = version
	if current := currentWorks(f); current != nil {
		f.verified = current.verified
		return f, false, nil
	}
	planned, err := planWorks(f)
	require.NoError(t, err)
	f.verified = planned.verified
	f, steps = simulate(t, f)
	return f, true, steps
}

// Shows: hub/upgrade-writes-nothing
func TestANewVersionWritesOnlyWhatItRendersDifferently(t *testing.T) {
	f := factsOf(configMap("a", 300_000), configMap("b", 300_000))
	f.key = "k"
	f, renders, steps := pass(t, f, "v1")
	require.True(t, renders)
	require.Len(t, steps, 2)
	f, renders, _ = pass(t, f, "v1")
	require.False(t, renders, "works of the present version need no rendering")
	assert.Zero(t, f.verified)

	f, renders, steps = pass(t, f, "v2")
	assert.True(t, renders, "a new version may render something else")
	assert.Empty(t, steps)
	f, renders, _ = pass(t, f, "v2")
	assert.False(t, renders, "it renders once in the life of the process")

	restarted := f
	restarted.verified = works.Sum{}
	_, renders, steps = pass(t, restarted, "v2")
	assert.True(t, renders)
	assert.Empty(t, steps)

	other := f
	other.rendering.Objects = []*unstructured.Unstructured{configMap("a", 300_001), configMap("b", 300_000)}
	other.verified = works.Sum{}
	other, _, steps = pass(t, other, "v3")
	assert.Len(t, steps, 1, "only the work that comes out differently is written")
	other, renders, steps = pass(t, other, "v3")
	assert.True(t, renders, "the other work is still by v1")
	assert.Empty(t, steps)
	_, renders, _ = pass(t, other, "v3")
	assert.False(t, renders)
	other = f
	other.works[0] = other.works[0].DeepCopy()
	other.works[0].Spec.Workload.Manifests = nil
	_, renders, steps = pass(t, other, "v2")
	assert.True(t, renders, "what was verified were other works")
	assert.Len(t, steps, 1, "drift is repaired")
}

// Shows: hub/drift-of-a-work
func TestDriftOfAWorkIsRepaired(t *testing.T) {
	base := func(t *testing.T) facts {
		t.Helper()
		f := factsOf(configMap("a", 1))
		f.rendering.Configs = []addon.ChosenConfig{{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{Resource: "r"},
			ConfigSpecHash:      addonv1beta1.ConfigSpecHash{SpecHash: "h"},
		}}
		f.rendering.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Name: "a"},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{}},
		}}
		f, _ = simulate(t, f)
		require.Len(t, f.works, 1)
		return f
	}
	tests := map[string]struct {
		change  func(work *workv1.ManifestWork)
		repairs bool
	}{
		"nothing":                    {func(*workv1.ManifestWork) {}, false},
		"a label of ours is gone":    {func(w *workv1.ManifestWork) { w.Labels = nil }, true},
		"a label of others":          {func(w *workv1.ManifestWork) { w.Labels["team"] = "x" }, false},
		"the hashes are changed":     {func(w *workv1.ManifestWork) { w.Annotations["open-cluster-management.io/config-spec-hash"] = "{}" }, true},
		"an annotation of others":    {func(w *workv1.ManifestWork) { w.Annotations["team"] = "x" }, false},
		"the owner is no controller": {func(w *workv1.ManifestWork) { w.OwnerReferences[0].Controller = nil }, true},
		"an executor":                {func(w *workv1.ManifestWork) { w.Spec.Executor = &workv1.ManifestWorkExecutor{} }, true},
		"an object is changed": {func(w *workv1.ManifestWork) {
			w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"}}`)
		}, true},
		"an object in another notation": {func(w *workv1.ManifestWork) {
			w.Spec.Workload.Manifests[0].Raw = append([]byte(" "), w.Spec.Workload.Manifests[0].Raw...)
		}, false},
		"an object that cannot be read": {func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests[0].Raw = []byte(`{}`) }, true},
		"an object more": {func(w *workv1.ManifestWork) {
			w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1.Manifest{})
		}, true},
		"a delete option":           {func(w *workv1.ManifestWork) { w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: "Orphan"} }, true},
		"manifest configs are gone": {func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = nil }, true},
		"the defaults of the API": {func(w *workv1.ManifestWork) {
			option := &w.Spec.ManifestConfigs[0]
			option.FeedbackScrapeType = "Poll"
			option.UpdateStrategy.ServerSideApply.FieldManager = "work-agent"
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := base(t)
			want := f.works[0].DeepCopy()
			changed := f.works[0].DeepCopy()
			test.change(changed)
			seen := changed.DeepCopy()
			f.works = []*workv1.ManifestWork{changed}
			f, steps := simulate(t, f)
			assert.Equal(t, test.repairs, len(steps) > 0)
			if test.repairs {
				assert.Equal(t, want, f.works[0])
			}
			assert.Equal(t, seen, changed, "what the cache holds is not touched")
		})
	}
}

func workloadObject(kind, name string, replicas any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "ns"},
		"spec": map[string]any{},
	}}
	if replicas != nil {
		u.Object["spec"] = map[string]any{"replicas": replicas}
	}
	return u
}

// Shows: hub/work-options
func TestManifestConfigs(t *testing.T) {
	wellKnown := []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}
	id := func(resource, name string) workv1.ResourceIdentifier {
		return workv1.ResourceIdentifier{Group: "apps", Resource: resource, Namespace: "ns", Name: name}
	}
	rendering := addon.Rendering{
		Objects: []*unstructured.Unstructured{
			workloadObject("Deployment", "d", nil), workloadObject("DaemonSet", "s", nil),
			workloadObject("Deployment", "off", int64(0)), workloadObject("StatefulSet", "no", nil),
		},
		ManifestConfigs: []workv1.ManifestConfigOption{
			{
				ResourceIdentifier: id("deployments", "d"),
				FeedbackRules: []workv1.FeedbackRule{
					{Type: workv1.WellKnownStatusType},
					{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "p", Path: ".a"}}},
				},
				UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly},
			},
			{ResourceIdentifier: id("statefulsets", "no"), FeedbackRules: wellKnown},
		},
	}
	of := func(probe addon.HealthProbe) []workv1.ManifestConfigOption {
		return works.ManifestConfigs(health.Options(addon.Setup{Health: probe}, rendering), rendering.ManifestConfigs)
	}
	assert.Equal(t, []workv1.ManifestConfigOption{
		{
			ResourceIdentifier: id("deployments", "d"),
			FeedbackRules: []workv1.FeedbackRule{
				{Type: workv1.WellKnownStatusType},
				{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{
					{Name: "SpecReplicas", Path: ".spec.replicas"}, {Name: "UpdatedReplicas", Path: ".status.updatedReplicas"},
					{Name: "Generation", Path: ".metadata.generation"}, {Name: "ObservedGeneration", Path: ".status.observedGeneration"},
					{Name: "p", Path: ".a"},
				}},
			},
			UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly},
		},
		{ResourceIdentifier: id("daemonsets", "s"), FeedbackRules: wellKnown},
		{ResourceIdentifier: id("statefulsets", "no"), FeedbackRules: []workv1.FeedbackRule{
			{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{
				{Name: "ReadyReplicas", Path: ".status.readyReplicas"}, {Name: "Replicas", Path: ".status.replicas"},
				{Name: "SpecReplicas", Path: ".spec.replicas"},
				{Name: "Generation", Path: ".metadata.generation"}, {Name: "ObservedGeneration", Path: ".status.observedGeneration"},
			}},
			{Type: workv1.WellKnownStatusType},
		}},
	}, of(addon.HealthWorkloads))
	assert.Equal(t, rendering.ManifestConfigs, of(addon.HealthLease),
		"with a lease nothing is asked of workloads")
}
