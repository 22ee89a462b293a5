package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/confighash"
)

// reordered are the facts about an add-on that has two configurations of one kind, and is to have them in the other
// order. Its condition Progressing says a reason since an hour ago.
func reordered(t *testing.T, status metav1.ConditionStatus, reason string) (
	f facts, decided configuration, had []addonv1beta1.ConfigReference,
) {
	t.Helper()
	one, two := fixture.Template("one"), fixture.Template("two")
	had = []addonv1beta1.ConfigReference{fixture.Desires(one, "1"), fixture.Desires(two, "2")}
	for i := range had {
		had[i].LastAppliedConfig = had[i].DesiredConfig.DeepCopy()
	}
	f = facts{
		addOn: fixture.With(fixture.AddOn("c1", had...), fixture.IsTrue("ManifestApplied"),
			fixture.Condition("Progressing", status, reason, fixture.Noon().Add(-time.Hour))),
		cma:       fixture.NewCMA(nil, fixture.Placement("p", two, one)),
		states:    addonconfig.States{one: {Hash: "1"}, two: {Hash: "2"}},
		admission: addonconfig.Admission{Granted: true},
	}
	decided = decide(f)
	require.Len(t, decided.references, 2)
	require.Equal(t, "two", decided.references[0].DesiredConfig.Name)
	return f, decided, had
}

// Another order of the configurations of a kind is rolled out as another content is (docs/reference/hub.md). So a
// progressDeadline counts from it, as from another content.
//
// Shows: hub/config-order
func TestProgressBeginsAgainWithAnotherOrder(t *testing.T) {
	f, decided, _ := reordered(t, metav1.ConditionTrue, "Progressing")
	after := f.addOn.DeepCopy()
	record(f, decided, after, addon.Progress{Now: fixture.Noon()})
	since := meta.FindStatusCondition(after.Status.Conditions, "Progressing").LastTransitionTime.Time
	assert.Equal(t, fixture.Noon(), since)
}

// The works of an add-on of an author are written by another program, later, and those of a template may be refused.
// The order that they have is the former one until then, and a rollout must not go on to the next cluster.
//
// Shows: hub/config-order
func TestWorksThatWereRenderedFromAnotherOrderAreNotComplete(t *testing.T) {
	f, decided, had := reordered(t, metav1.ConditionFalse, "Completed")
	after := f.addOn.DeepCopy()
	record(f, decided, after, addon.Progress{
		Now: fixture.Noon(), Works: []*workv1.ManifestWork{fixture.Work("w", 3, had)},
		Orders: []string{confighash.OrderOf(had)},
	})
	progressing := meta.FindStatusCondition(after.Status.Conditions, "Progressing")
	assert.NotEqual(t, "Completed", progressing.Reason, progressing.Message)
}

// What is known of the order of works counts, and what is not known holds no rollout.
//
// Shows: hub/config-order
func TestOnlyAKnownOrderOfWorksHoldsARollout(t *testing.T) {
	f, decided, had := reordered(t, metav1.ConditionTrue, "Progressing")
	former, desired := confighash.OrderOf(had), confighash.OrderOf(decided.references)
	for sentence, tc := range map[string]struct {
		orders   []string
		complete bool
	}{
		"no order is known":                      {complete: true},
		"all works have the desired one":         {orders: []string{desired, desired}, complete: true},
		"a work has the former one":              {orders: []string{desired, former}},
		"all works have the former one":          {orders: []string{former, former}},
		"the former one, of one work of several": {orders: []string{former}},
	} {
		t.Run(sentence, func(t *testing.T) {
			after := f.addOn.DeepCopy()
			record(f, decided, after, addon.Progress{Now: fixture.Noon(), Orders: tc.orders, Works: []*workv1.ManifestWork{
				fixture.Work("v", 3, decided.references), fixture.Work("w", 3, decided.references),
			}})
			progressing := meta.FindStatusCondition(after.Status.Conditions, "Progressing")
			assert.Equal(t, tc.complete, progressing.Reason == "Completed", progressing.Message)
		})
	}
}
