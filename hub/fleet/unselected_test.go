package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// flapping is a Placement that has selected a, and drops and selects b each second until an instant.
type flapping struct {
	*scene

	d *Decisions
}

// pass decides for some clusters at an instant.
func (f *flapping) pass(at time.Time, clusters ...string) {
	f.pages = []*clusterv1beta1.PlacementDecision{pageOf(1, clusters...)}
	f.pages[0].ResourceVersion = at.String()
	f.pages[0].ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(at.Truncate(time.Second)))}}
	f.placement = f.placement.DeepCopy()
	f.placement.Status.NumberOfSelectedClusters = int32(len(clusters))
	if f.own {
		f.placement.Status.Conditions = []metav1.Condition{Mark(f.placement.Generation, f.pages)}
	}
	f.d = NewDecisions(Seen{Key: f.d.Key, Placement: f.placement, Pages: f.pages, Own: f.own, Before: f.d}, at)
}

func TestAClusterThatComesAndGoesHoldsUpOthers(t *testing.T) {
	const flaps = 2 * time.Minute
	for sentence, tc := range map[string]struct {
		change func(*scene)
		edits  bool
		want   time.Duration
	}{
		"for a minute where this hub manager schedules":     {change: ours, want: gatherPeriod},
		"where another scheduler may be between writes":     {change: func(*scene) {}, want: flaps + QuietPeriod},
		"where its author edits the Placement all the time": {change: ours, edits: true, want: flaps + QuietPeriod},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := &flapping{scene: decided([]string{"a", "b", "c"}).but(tc.change)}
			f.d = f.known()
			var unselected time.Duration
			for after := time.Duration(0); after < 2*flaps && unselected == 0; after += 100 * time.Millisecond {
				at := noon().Add(after)
				switch {
				case after%time.Second != 0 || after > flaps:
				case after%(2*time.Second) == 0:
					f.pass(at, "c")
				default:
					f.pass(at, "b", "c")
				}
				if tc.edits && after < flaps {
					f.placement.Generation++
				}
				if _, err := f.d.Unselected("a", at); err == nil {
					unselected = after
				}
				if _, err := f.d.Unselected("b", at); after < flaps && !f.d.Selects("b") {
					require.Error(t, err, after)
				}
			}
			assert.Equal(t, tc.want, unselected)
		})
	}
}

func TestOnlyClustersThatWereDroppedLatelyAreRemembered(t *testing.T) {
	f := &flapping{scene: decided([]string{"a", "b"}).but(ours)}
	f.d = f.known()
	f.pass(noon(), "b")
	f.pass(noon().Add(gatherPeriod-1), "c")
	assert.Len(t, f.d.dropped, 2)
	f.pass(noon().Add(gatherPeriod), "c", "d")
	assert.Len(t, f.d.dropped, 1)
	f.pass(noon().Add(gatherPeriod), "b", "c", "d")
	assert.Empty(t, f.d.dropped)
}

// Many clusters lose their labels one after the other. The limit of removals has to count them together.
func TestTheClustersOfOneChangeAreUnselectedTogether(t *testing.T) {
	f := &flapping{scene: decided([]string{"a", "b", "c"}).but(ours)}
	f.d = f.known()
	f.pass(noon(), "b", "c")
	f.pass(noon().Add(2*time.Second), "c")
	for after, want := range map[time.Duration]bool{QuietPeriod: false, 2*time.Second + QuietPeriod: true} {
		for _, cluster := range []string{"a", "b"} {
			_, err := f.d.Unselected(cluster, noon().Add(after))
			assert.Equal(t, want, err == nil, "%s after %s", cluster, after)
		}
	}
}

// Another controller writes one page after the other, and may stop in between. It may begin again with other decisions.
// Shows: hub/rollout-incomplete
func TestClustersThatAnotherControllerDropsAreLeaving(t *testing.T) {
	pages := func(d *Decisions, at time.Time, all ...[]string) *Decisions {
		s := decided(all...)
		for _, page := range s.pages {
			page.ResourceVersion = at.String()
		}
		return NewDecisions(Seen{Key: s.known().Key, Placement: s.placement, Pages: s.pages, Before: d}, at)
	}
	whole := pages(nil, noon().Add(-time.Hour), []string{"a", "b"}, []string{"c"})
	torn := pages(whole, noon(), []string{"0", "a"}, []string{"c"})
	leaving, until := torn.Leaving(noon())
	assert.Equal(t, map[string]Group{"b": whole.Groups["b"]}, leaving)
	assert.Equal(t, noon().Add(FailoverPeriod), until)

	again := pages(torn, noon().Add(time.Minute), []string{"0", "a"}, []string{"b"})
	leaving, _ = again.Leaving(noon().Add(time.Minute))
	assert.Equal(t, map[string]Group{"c": whole.Groups["c"]}, leaving, "b is back")

	late := noon().Add(time.Minute + FailoverPeriod)
	leaving, until = again.Leaving(late)
	assert.Empty(t, leaving)
	assert.Zero(t, until)
	leaving, _ = pages(again, late, []string{"0"}, []string{"b"}).Leaving(late)
	assert.Equal(t, map[string]Group{"a": whole.Groups["a"]}, leaving, "c is gone for good")

	gone := NewDecisions(Seen{Key: whole.Key, Before: whole}, noon())
	leaving, _ = gone.Leaving(noon())
	assert.Empty(t, leaving, "nothing comes back of what a Placement selected that is deleted")
	leaving, _ = pages(gone, noon().Add(time.Second), []string{"a", "b"}).Leaving(noon().Add(time.Second))
	assert.Equal(t, map[string]Group{"c": whole.Groups["c"]}, leaving, "but for one that is created again")

	owner := OwnerOf("b", []*Decisions{torn}, noon())
	require.Len(t, owner.Doubts, 1)
	assert.Equal(t, -1, owner.Index)
	assert.Equal(t, noon().Add(FailoverPeriod), owner.Doubts[0].Until)
	assert.Empty(t, OwnerOf("d", []*Decisions{torn}, noon()).Doubts)
}
