package works

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
)

func heldApplied(all []*workv1.ManifestWork) []*workv1.ManifestWork {
	for _, w := range all {
		w.Generation = 1
		w.Status.Conditions = []metav1.Condition{{Type: workv1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	}
	return all
}

// An upgrade makes objects of two full works larger, so that each gives one to the other. Neither can hold what it gives
// away beside what it gets.
func TestTwoWorksThatGiveEachOtherAnObjectComeToAnEnd(t *testing.T) {
	set := testSet()
	unit := MaxBytes / 400
	objects := func(a, b, p int) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{
			configMap("a", a*unit), configMap("x", 130*unit-200), configMap("b", b*unit), configMap("p", p*unit),
			configMap("y", 120*unit-200),
		}
	}
	place := func(names ...string) []*unstructured.Unstructured {
		var some []*unstructured.Unstructured
		for _, o := range objects(100, 50, 50) {
			for _, n := range names {
				if o.GetName() == n {
					some = append(some, o)
				}
			}
		}
		return some
	}
	first, _ := run(t, set, place("a", "x"), nil)
	require.Len(t, first, 1)
	second, _ := run(t, set, place("b", "p", "y"), nil)
	require.Len(t, second, 1)
	second[0].Name = set.Name(1)
	have := heldApplied(append(first, second...))
	names := func() (all []string) {
		for _, w := range have {
			var n string
			bytes := 0
			for _, m := range ReadAll(w) {
				n += m.Name
			}
			for _, m := range w.Spec.Workload.Manifests {
				bytes += len(m.Raw)
			}
			all = append(all, n)
			_ = bytes
		}
		return all
	}
	var steps []Step
	for range 20 {
		have, steps = run(t, set, objects(275, 255, 390), have)
		have = heldApplied(have)
		t.Log(names(), len(steps))
	}
	sizes := 0
	for _, w := range have {
		for _, m := range w.Spec.Workload.Manifests {
			sizes += len(m.Raw)
		}
	}
	assert.Greater(t, sizes, (275+255+390+130+120-10)*unit, "what was upgraded is in the works")
}

// Shows: hub/moves-end
func TestAnUpgradeOfAFullWorkReachesItsClusterWhereItCan(t *testing.T) {
	const unit = MaxBytes / 400
	object := func(name string, units int, needs ...int) item {
		return item{object: configMap(name, units*unit-200), needs: needs}
	}
	broken := func(name string, units int) item {
		return item{object: configMap(name, units*unit-200), broken: true}
	}
	tests := map[string]struct {
		// before are in one work, and after are the upgraded objects, in the same order.
		before, after []item
		// refused are the objects of after that the cluster refuses for ever, and waits is what is told about works.
		refused []string
		waits   string
	}{
		"what moves needs what stays": {
			before: []item{object("definition", 250), object("x", 120), object("ox", 15)},
			after:  []item{object("definition", 390), object("x", 120), object("ox", 15, 0)},
		},
		"what moves needs what stays, and both have no room in a work": {
			before: []item{object("definition", 250), object("ox", 100)},
			after:  []item{object("definition", 395), object("ox", 200, 0)},
		},
		"what stays needs what moves": {
			before: []item{object("ox", 250), object("definition", 100)},
			after:  []item{object("ox", 395, 1), object("definition", 200)},
		},
		"several objects need each other across": {
			before: []item{object("a", 100), object("b", 100), object("c", 100), object("d", 100)},
			after:  []item{object("a", 300, 3), object("b", 300, 0), object("c", 300, 1), object("d", 300)},
		},
		"the cluster refuses another object that moves": {
			before:  []item{object("a", 250), object("b", 100), object("c", 20)},
			after:   []item{object("a", 390), object("b", 200), broken("c", 21)},
			refused: []string{"c"},
		},
		"the cluster refuses what moves, which has no room beside what stays": {
			before:  []item{object("a", 250), object("b", 100)},
			after:   []item{object("a", 390), broken("b", 200)},
			refused: []string{"b"},
		},
		"the cluster refuses more than one work can keep": {
			before:  []item{object("a", 100), object("b", 100), object("c", 100), object("d", 100)},
			after:   []item{object("a", 390), broken("b", 390), broken("c", 300), object("d", 300, 0)},
			refused: []string{"b", "c"},
			waits: "ManifestWork addon-a-deploy-0 keeps the earlier versions of ConfigMap ns/b, ConfigMap ns/c until the new " +
				"ones are applied by ManifestWork addon-a-deploy-1, ManifestWork addon-a-deploy-2. It has no room for the new " +
				"ones: it would have 706350 bytes of manifests, and a ManifestWork takes no more than 512000.",
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			s := newSpoke(t, rand.New(rand.NewPCG(1, 2)))
			s.render(test.before)
			s.settle()
			s.done()
			require.Len(t, s.works, 1)

			s.render(test.after)
			s.settle()
			assert.Equal(t, test.refused, s.refused())
			assert.Equal(t, test.waits, strings.Join(s.waits, " "))
			if len(test.refused) == 0 {
				s.done()
			}
			for i := range test.after {
				test.after[i].broken = false
				test.after[i].object.SetLabels(map[string]string{"mended": ""})
			}
			s.render(test.after)
			s.settle()
			s.done()
		})
	}
}

// The former work is written, and the work that gets the object is not created.
//
// Shows: hub/moves-end
func TestAnObjectMovesAlthoughItsNewWorkCouldNotBeCreatedAtFirst(t *testing.T) {
	set := testSet()
	before, _ := run(t, set, []*unstructured.Unstructured{configMap("a", 200_000), configMap("b", 1000)}, nil)
	objects := []*unstructured.Unstructured{configMap("a", 200_000), configMap("b", 300_000)}
	have, steps := run(t, set, objects, heldApplied(before))
	require.Len(t, steps, 2)
	require.Len(t, ReadAll(have[0]), 2)
	have, steps = run(t, set, objects, have[:1])
	require.Len(t, steps, 1, "the new work is created by the next pass")
	require.Len(t, have, 2)
	have, _ = run(t, set, objects, heldApplied(have))
	require.Len(t, have, 2)
	assert.Len(t, ReadAll(have[0]), 1)
	assert.Len(t, ReadAll(have[1]), 1)
}

func TestWhatAClusterHasAppliedOfAWork(t *testing.T) {
	one := func(name string, status metav1.ConditionStatus, generation int64) workv1.ManifestCondition {
		return workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{Kind: "ConfigMap", Namespace: "ns", Name: name},
			Conditions:   []metav1.Condition{{Type: workv1.ManifestApplied, Status: status, ObservedGeneration: generation}},
		}
	}
	tests := map[string]struct {
		status     metav1.ConditionStatus
		generation int64
		manifests  []workv1.ManifestCondition
		want       []string
	}{
		"nothing is reported":           {},
		"all":                           {status: "True", generation: 2, want: []string{"a", "b"}},
		"all of an earlier generation":  {status: "True", generation: 1},
		"one":                           {"False", 2, []workv1.ManifestCondition{one("a", "True", 2), one("b", "False", 2)}, []string{"a"}},
		"one without a generation":      {"False", 2, []workv1.ManifestCondition{one("a", "True", 0), one("b", "False", 0)}, []string{"a"}},
		"one of an earlier generation":  {"False", 2, []workv1.ManifestCondition{one("a", "True", 1), one("b", "False", 2)}, nil},
		"one of an earlier report":      {"False", 1, []workv1.ManifestCondition{one("a", "True", 1), one("b", "False", 1)}, nil},
		"one that is reported twice":    {"False", 2, []workv1.ManifestCondition{one("a", "True", 2), one("a", "False", 2)}, nil},
		"an object that it has no more": {"False", 2, []workv1.ManifestCondition{one("c", "True", 2)}, nil},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			all, _ := run(t, testSet(), []*unstructured.Unstructured{configMap("a", 1), configMap("b", 1)}, nil)
			work := all[0]
			work.Generation = 2
			if test.status != "" {
				work.Status.Conditions = []metav1.Condition{{
					Type: workv1.WorkApplied, Status: test.status, ObservedGeneration: test.generation,
				}}
			}
			work.Status.ResourceStatus.Manifests = test.manifests
			small := trimmed(t, work)
			for _, work := range []*workv1.ManifestWork{work, small, trimmed(t, small)} {
				var names []string
				for id := range appliedIn(work) {
					names = append(names, id.Name)
				}
				assert.ElementsMatch(t, test.want, names)
			}
		})
	}
}
