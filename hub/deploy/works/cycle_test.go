package works

import (
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
	set := testSet(Managed, "c1")
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
