package works

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// planned does a plan of one ConfigMap, rendered from AddOnDeploymentConfigs in this order, in memory. It returns the
// works afterwards, and how many steps there are. By is the version of the code.
func planned(t *testing.T, by string, configs []string, have ...*workv1.ManifestWork) ([]*workv1.ManifestWork, int) {
	t.Helper()
	objects := []*unstructured.Unstructured{configMap("a", 1)}
	d, err := Divide(objects, false)
	require.NoError(t, err)
	chosen := ordered(configs...)
	o := OptionsOf(addon.Rendering{Objects: objects, Configs: chosen}, nil, func(key string) string {
		return Fingerprint(key, chosen, addon.HealthLease, "")
	}, d)
	o.By = by
	p, err := Plan(testSet(), d.Deploy[Managed], o, have)
	require.NoError(t, err)
	after := slices.Clone(p.Kept)
	for _, s := range p.Steps {
		require.NotEqual(t, reconcile.Delete, s.Verb)
		after = append(after, s.After)
	}
	return after, len(p.Steps)
}

// ordered are AddOnDeploymentConfigs in this order.
func ordered(configs ...string) []addon.ChosenConfig {
	var chosen []addon.ChosenConfig
	for _, name := range configs {
		of := fixture.Desires(fixture.DeploymentConfig(name), "1")
		chosen = append(chosen, addon.ChosenConfig{
			ConfigGroupResource: of.ConfigGroupResource, ConfigSpecHash: *of.DesiredConfig,
		})
	}
	return chosen
}

// annotate sets an annotation of a work.
func annotate(key, value string) func(*testing.T, *workv1.ManifestWork) {
	return func(_ *testing.T, w *workv1.ManifestWork) { w.Annotations[key] = value }
}

// drop removes an annotation of a work.
func drop(key string) func(*testing.T, *workv1.ManifestWork) {
	return func(_ *testing.T, w *workv1.ManifestWork) { delete(w.Annotations, key) }
}

// recordedBefore leaves the record as an earlier version of ours writes it: of the spec that the work has, and without
// what that version does not know.
func recordedBefore(t *testing.T, w *workv1.ManifestWork) {
	t.Helper()
	record, err := recordOf(w)
	require.NoError(t, err)
	record.By, record.Spec, record.Order = "v1", specHash(&w.Spec), ""
	w.Annotations[names.AnnotationRenderedFrom] = record.annotation()
}

// another is what another program writes into the spec of a work.
func another(_ *testing.T, w *workv1.ManifestWork) {
	w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"of-the-program"}}`)
}

// The order that a work notes is known only where the same program wrote the note and the spec. What is not known holds
// no rollout (ordersOf), and starts no write, whatever order is wanted: an upgrade of the hub manager writes no works. A
// spec that another client changed is repaired, and then the order is known.
//
// Shows: hub/config-order
func TestTheOrderOnAWorkIsKnownOnlyAsItWasWrittenWithTheSpec(t *testing.T) {
	type edits = []func(*testing.T, *workv1.ManifestWork)
	for sentence, tc := range map[string]struct {
		then  edits
		known bool
		// repaired says that the work is written for what it was written for before.
		repaired bool
	}{
		"as it was written": {known: true},
		"another client adds an annotation": {
			then: edits{annotate("example.com/a", "b")}, known: true,
		},
		"another program writes the spec, and leaves what it does not know": {
			then: edits{another}, repaired: true,
		},
		"another program writes the options": {repaired: true, then: edits{
			func(_ *testing.T, w *workv1.ManifestWork) {
				w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
			},
		}},
		"an earlier version of ours writes the spec, with its record, and leaves the note": {
			then: edits{another, recordedBefore}, repaired: true,
		},
		"an earlier version of ours writes the record only, and leaves the note": {then: edits{recordedBefore}},
		"an earlier version of ours wrote all of it": {
			then: edits{recordedBefore, drop(names.AnnotationConfigOrder)},
		},
		"another client changes the note": {
			then: edits{annotate(names.AnnotationConfigOrder, ConfigOrder(ordered("two", "one")))},
		},
		"another client removes the note":   {then: edits{drop(names.AnnotationConfigOrder)}},
		"another client removes the record": {then: edits{drop(names.AnnotationRenderedFrom)}, repaired: true},
		"another client breaks the record":  {then: edits{annotate(names.AnnotationRenderedFrom, "{")}, repaired: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			written, _ := planned(t, "v2", []string{"one", "two"})
			require.Len(t, written, 1)
			work, order := written[0], ConfigOrder(ordered("one", "two"))
			require.NotEmpty(t, order)
			for _, edit := range tc.then {
				edit(t, work)
			}
			known := map[bool]string{true: order}[tc.known]
			assert.Equal(t, known, OrderOf(work))
			assert.Equal(t, known, OrderOf(trimmed(t, work)), "as a digest")

			for _, by := range []string{"v2", "v3"} {
				after, steps := planned(t, by, []string{"one", "two"}, work)
				assert.Equal(t, map[bool]int{true: 1}[tc.repaired], steps, "writes of %s", by)
				_, steps = planned(t, by, []string{"one", "two"}, after...)
				assert.Zero(t, steps, "%s writes what it has written", by)
			}
			after, steps := planned(t, "v2", []string{"two", "one"}, work)
			assert.Equal(t, map[bool]int{true: 1}[tc.known || tc.repaired], steps, "writes for another order")
			if tc.known {
				assert.Equal(t, ConfigOrder(ordered("two", "one")), OrderOf(after[0]))
			}
		})
	}
}
