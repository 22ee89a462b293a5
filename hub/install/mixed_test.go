package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/names"
)

// mixed are the facts of an add-on whose Placement was edited an hour ago. The edit dropped some clusters, whose removals
// do not come to an end; clusters that nobody deselected lost their add-on in the last minute.
func mixed(explained, unexplained int, changes ...func(*fleetFacts)) fleetFacts {
	return crowd(explained+unexplained, append([]func(*fleetFacts){func(f *fleetFacts) {
		f.state.Intents = intents("before")
		for i := range f.candidates {
			f.candidates[i].absence.noted = noon().Add(-time.Hour)
			if i >= explained {
				f.candidates[i].absence.noted = noon()
			}
		}
	}}, changes...)...)
}

// The removal from one cluster, which an edit explains, is never confirmed, because its agent writes its ManagedCluster
// all the time. Then thirty clusters lose their labels, and a user confirms that as the annotation says.
//
// Shows: hub/removal-limit
func TestWhatIsHeldBesideWhatAnEditExplainsIsConfirmedAsToldOrNot(t *testing.T) {
	r := decideRemovals(mixed(1, 30))
	text := r.annotations[names.AnnotationRemovalHeld]
	require.NotEmpty(t, text)
	assert.Equal(t, []string{"c000"}, clustersOf(r.remove), "the edit explains it")
	assert.Len(t, r.held, 30)
	told := nameOf("cma", r.held)
	require.Contains(t, text, names.AnnotationConfirmRemoval+"="+told)
	again := mixed(1, 30, after(r), annotatedToo(names.AnnotationConfirmRemoval, told))
	r = decideRemovals(again)
	assert.True(t, r.confirmed, "a user set what the annotation told")
	assert.Len(t, r.remove, 31)
}

// An edit explains the removal from c1, which waited for long; c2 lost its label since. Only that counts for the limit of
// the next fifteen minutes.
func TestWhatAnEditExplainsDoesNotCountBesideWhatNoEditExplains(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	now := h.clock.Now()
	cma, err := h.r.AddOns.PeekClusterManagementAddOn(t.Context(), "hello")
	require.NoError(t, err)
	d, err := h.r.Placements.Decisions(t.Context(), keyOfOurs())
	require.NoError(t, err)
	d.Groups, d.Unfit = nil, nil
	f := fleetFacts{
		now: now, cma: cma, intents: intended("now", now.Add(-time.Hour)), state: removalState{Intents: intents("before")},
		placements: []*fleet.Decisions{d},
		limit:      Limit{Percent: 25, Clusters: 10}, size: 2,
	}
	for cluster, noted := range map[string]time.Time{"c1": now.Add(-time.Hour), "c2": now} {
		c := candidate{cluster: cluster, absence: absence{noted: noted}}
		c.addon, err = h.r.AddOns.PeekAddOn(t.Context(), types.NamespacedName{Namespace: cluster, Name: "hello"})
		require.NoError(t, err)
		c.managed, err = h.r.cluster(t.Context(), cluster)
		require.NoError(t, err)
		f.candidates = append(f.candidates, c)
	}
	p := decideRemovals(f)
	require.Len(t, p.remove, 2)
	require.NoError(t, h.r.remove(t.Context(), f, p))
	assert.ElementsMatch(t, []string{"c1", "c2"}, h.removed)
	assert.Equal(t, 1, sum(h.r.memory.recent("hello", now.Add(-removalPeriod))), "an edit explains that of c1")
}
