package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// A template's works have the order of their configurations in an annotation. The program of an author that takes them
// over in place may be of another project, or of an earlier version: it writes other manifests and other hashes and
// leaves annotations that it does not know. What is noted then says nothing of the order that the works have now, and
// must not hold a rollout for ever.
//
// Shows: hub/config-order
func TestTheOrderThatAnotherWriterLeftOnAWorkHoldsNoRollout(t *testing.T) {
	f, decided, had := reordered(t, "True", "Progressing")
	left := fixture.Work("w", 3, had) // What was noted before the other program wrote the work.
	left.Annotations[names.AnnotationRenderedFrom] = `{"inputs":"0011223344556677","manifests":1,"spec":"8899aabbccddeeff"}`
	left.Spec.Workload.Manifests = make([]workv1.Manifest, 1)
	left.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"of-the-program"}}`)
	after := f.addOn.DeepCopy()
	record(f, decided, after, addon.Progress{Now: fixture.Noon(), Works: []*workv1.ManifestWork{left}})
	progressing := meta.FindStatusCondition(after.Status.Conditions, "Progressing")
	assert.Equal(t, "Completed", progressing.Reason, progressing.Message)
}

// An earlier version noted contents without the order of the configurations of a kind. An upgrade of the hub manager
// changes nothing of what add-ons have: one that had soaked has soaked, whatever the order in which the specs name the
// configurations.
//
// Shows: hub/config-order
func TestWhatAnEarlierVersionNotedOfAnAddOnWithTwoConfigurationsOfAKindStillCounts(t *testing.T) {
	one, two := fixture.Template("one"), fixture.Template("two")
	for sentence, tc := range map[string]struct {
		configs []addonv1beta1.AddOnConfig
		noted   string // as the version before wrote it
	}{
		"one":                  {configs: []addonv1beta1.AddOnConfig{one}, noted: "[7f86082b-678e784328811c3e]"},
		"two in the order":     {configs: []addonv1beta1.AddOnConfig{one, two}, noted: "[7f86082b-b5a50f9ba238be1a]"},
		"two in another order": {configs: []addonv1beta1.AddOnConfig{two, one}, noted: "[7f86082b-b5a50f9ba238be1a]"},
	} {
		t.Run(sentence, func(t *testing.T) {
			hashes := map[string]string{"one": "1", "two": "2"}
			var has []addonv1beta1.ConfigReference
			for _, config := range tc.configs {
				has = append(has, fixture.Has(config, hashes[config.Name]))
			}
			soaked := fixture.Condition(names.ConditionSoaked, "True", "Soaked", fixture.Noon().Add(-time.Hour))
			soaked.Message = messageSoaked + " " + tc.noted
			f := facts{
				addOn: fixture.With(fixture.AddOn("c1", has...), fixture.IsTrue("ManifestApplied"), soaked,
					fixture.Condition("Progressing", "True", "Progressing", fixture.Noon().Add(-time.Minute))),
				cma:       fixture.NewCMA(nil, fixture.Placement("p", tc.configs...)),
				states:    addonconfig.States{one: {Hash: "1"}, two: {Hash: "2"}},
				admission: addonconfig.Admission{Granted: true},
			}
			decided := decide(f)
			require.True(t, addonconfig.SameDesired(decided.references, has), "nothing changes but the hub manager")
			condition, _ := f.noted(decided)
			assert.NotNil(t, condition, "the rollout waits again for an add-on that had soaked")
		})
	}
}
