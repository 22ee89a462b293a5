package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/clustersets"
)

// tenants are the facts of an add-on that lists Placement p, whose namespace has the clusters of crowd, and Placement q
// of another namespace, to which set theirs is bound. Neither selects the first n clusters.
func tenants(n int, theirs func(*scene), changes ...func(*fleetFacts)) fleetFacts {
	return crowd(n, append([]func(*fleetFacts){func(f *fleetFacts) {
		other := decided("q", "x")
		if theirs != nil {
			other = other.but(theirs)
		}
		d := other.known()
		d.Key = keyOfTheirs()
		f.placements, f.own = append(f.placements, d), true
		all, _ := clustersets.MembersOf([]string{clustersets.Global}, nil)
		some, _ := clustersets.MembersOf([]string{"theirs"}, nil)
		f.inSets = map[string]clustersets.Members{"ns": all, "theirs": some}
		f.intents[keyOfTheirs().String()] = intent{intentFormat + "now", noon().Add(-time.Minute)}
		f.state.Intents[keyOfTheirs().String()] = intentFormat + "now"
	}}, changes...)...)
}

func keyOfTheirs() types.NamespacedName { return types.NamespacedName{Namespace: "theirs", Name: "q"} }

func editedOf(keys ...string) func(*fleetFacts) {
	return func(f *fleetFacts) {
		for _, key := range keys {
			f.state.Intents[key] = intentFormat + "before"
		}
	}
}

func droppedBy(keys ...types.NamespacedName) func(*fleetFacts) {
	return func(f *fleetFacts) {
		for i := range f.candidates {
			for _, key := range keys {
				f.candidates[i].absence.by = addTo(f.candidates[i].absence.by, key)
			}
		}
	}
}

func unseen(f *fleetFacts) {
	for i := range f.candidates {
		f.candidates[i].absence.unseen = true
	}
}

// inTheirs has the clusters in the set of the other namespace, too.
func inTheirs(f *fleetFacts) {
	for i := range f.candidates {
		f.candidates[i].managed.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: "theirs"}
	}
}

// Shows: hub/removal-limit
func TestAnEditOfOneUserDoesNotExplainWhatAnotherPlacementDropped(t *testing.T) {
	ours, theirs := keyOf("p"), keyOfTheirs()
	tests := map[string]struct {
		changes []func(*fleetFacts)
		removed bool
	}{
		"an edit of the Placement that dropped them":              {[]func(*fleetFacts){droppedBy(ours), editedOf(ours.String())}, true},
		"not an edit of another one":                              {[]func(*fleetFacts){droppedBy(ours), editedOf(theirs.String())}, false},
		"not even where that may select them":                     {[]func(*fleetFacts){droppedBy(ours), editedOf(theirs.String()), inTheirs}, false},
		"both dropped them, and one was edited":                   {[]func(*fleetFacts){droppedBy(ours, theirs), editedOf(theirs.String())}, false},
		"both dropped them, and both were edited":                 {[]func(*fleetFacts){droppedBy(ours, theirs), editedOf(theirs.String(), ours.String())}, true},
		"an edit of the list":                                     {[]func(*fleetFacts){droppedBy(ours), editedOf(wholeList)}, true},
		"after a restart, of the one that may select them":        {[]func(*fleetFacts){unseen, editedOf(ours.String())}, true},
		"after a restart, not of one that cannot":                 {[]func(*fleetFacts){unseen, editedOf(theirs.String())}, false},
		"after a restart, not of one of two that may":             {[]func(*fleetFacts){unseen, inTheirs, editedOf(ours.String())}, false},
		"after a restart, of both that may":                       {[]func(*fleetFacts){unseen, inTheirs, editedOf(ours.String(), theirs.String())}, true},
		"not of one that dropped them after they were dropped":    {[]func(*fleetFacts){unseen, droppedBy(theirs), editedOf(theirs.String())}, false},
		"no Placement may select them, and one of two was edited": {[]func(*fleetFacts){unseen, editedOf(theirs.String()), nowhere}, false},
		"no Placement may select them, and both were edited":      {[]func(*fleetFacts){unseen, editedOf(ours.String(), theirs.String()), nowhere}, true},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := tenants(30, nil, tc.changes...)
			f.intents[ours.String()] = intent{intentFormat + "now", noon().Add(-time.Minute)}
			f.intents[wholeList] = intent{intentFormat + "list", noon().Add(-time.Minute)}
			r := decideRemovals(f)
			assert.Equal(t, tc.removed, len(r.remove) == 30, "%d are removed", len(r.remove))
			assert.Equal(t, tc.removed, len(r.held) == 0, "%d are held", len(r.held))
		})
	}
}

func nowhere(f *fleetFacts) { f.inSets["ns"] = nil }

// Shows: hub/tenants-apart
func TestWhatIsUncertainAboutThePlacementOfAnotherUserHoldsUpNothing(t *testing.T) {
	wrong := func(s *scene) {
		s.placement.Status.Conditions = append(s.placement.Status.Conditions, metav1.Condition{
			Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue, Message: "typo",
		})
	}
	gone := func(s *scene) { s.placement = nil }
	going := func(s *scene) { s.placement.DeletionTimestamp = new(metav1.NewTime(noon())) }
	others := func(s *scene) {
		s.placement.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
		s.pages = nil
	}
	knew := func(members clustersets.Members, clusters ...string) func(*fleetFacts) {
		return func(f *fleetFacts) {
			f.earlier = map[types.NamespacedName]earlier{keyOfTheirs(): {decided("q", clusters...).known(), members, true}}
		}
	}
	all, err := clustersets.MembersOf([]string{clustersets.Global}, nil)
	assert.NoError(t, err)
	at := func(since time.Time) func(*fleetFacts) {
		return func(f *fleetFacts) { f.placements[1].DoubtedSince = since }
	}
	tests := map[string]struct {
		theirs  func(*scene)
		changes []func(*fleetFacts)
		removed bool
	}{
		"one that is misconfigured":                         {wrong, nil, true},
		"but where it may select the cluster":               {wrong, []func(*fleetFacts){inTheirs}, false},
		"but where it selected it":                          {wrong, []func(*fleetFacts){func(f *fleetFacts) { f.placements[1].Groups["c000"] = fleet.Group{} }}, false},
		"but where a set has a wrong selector":              {wrong, []func(*fleetFacts){func(f *fleetFacts) { delete(f.inSets, "theirs") }}, false},
		"one that is gone, of which this process knows":     {gone, []func(*fleetFacts){knew(nil, "x")}, true},
		"but not of one that it never saw":                  {gone, nil, false},
		"but not where that selected the cluster":           {gone, []func(*fleetFacts){knew(nil, "c000")}, false},
		"but not where a binding went before":               {gone, []func(*fleetFacts){knew(all, "x")}, false},
		"but not where it dropped the cluster as it went":   {gone, []func(*fleetFacts){knew(nil, "x"), droppedBy(keyOfTheirs())}, false},
		"one that is going":                                 {going, []func(*fleetFacts){knew(nil, "x")}, true},
		"but not where its binding went":                    {going, []func(*fleetFacts){knew(all, "x")}, false},
		"one of another scheduler, for five minutes":        {others, []func(*fleetFacts){at(noon().Add(-time.Minute))}, false},
		"nor on a hub that another scheduler decides for":   {wrong, []func(*fleetFacts){at(noon().Add(-time.Minute)), func(f *fleetFacts) { f.own = false }}, false},
		"one of another scheduler, that never writes pages": {others, []func(*fleetFacts){at(noon().Add(-fleet.FailoverPeriod))}, true},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			r := decideRemovals(tenants(1, tc.theirs, tc.changes...))
			assert.Equal(t, tc.removed, len(r.remove) == 1, "%v", r.kept)
			assert.Equal(t, tc.removed, r.scoped, "bindings and sets are asked from the API server before")
		})
	}
}
