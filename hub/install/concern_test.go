package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		f.intents[idOf(keyOfTheirs())] = intent{intentFormat + "now", noon().Add(-time.Minute)}
		f.state.Intents[idOf(keyOfTheirs())] = intentFormat + "now"
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
	ours, theirs := keyOfOurs(), keyOfTheirs()
	tests := map[string]struct {
		changes []func(*fleetFacts)
		removed bool
	}{
		"an edit of the Placement that dropped them":           {[]func(*fleetFacts){droppedBy(ours), editedOf(idOf(ours))}, true},
		"not an edit of another one":                           {[]func(*fleetFacts){droppedBy(ours), editedOf(idOf(theirs))}, false},
		"not even where that may select them":                  {[]func(*fleetFacts){droppedBy(ours), editedOf(idOf(theirs)), inTheirs}, false},
		"both dropped them, and one was edited":                {[]func(*fleetFacts){droppedBy(ours, theirs), editedOf(idOf(theirs))}, false},
		"both dropped them, and both were edited":              {[]func(*fleetFacts){droppedBy(ours, theirs), editedOf(idOf(theirs), idOf(ours))}, true},
		"an edit of the list":                                  {[]func(*fleetFacts){droppedBy(ours), editedOf(wholeList)}, true},
		"after a restart, not of one of two":                   {[]func(*fleetFacts){unseen, editedOf(idOf(ours))}, false},
		"after a restart, of both":                             {[]func(*fleetFacts){unseen, editedOf(idOf(ours), idOf(theirs))}, true},
		"not of one that dropped them after they were dropped": {[]func(*fleetFacts){unseen, droppedBy(theirs), editedOf(idOf(theirs))}, false},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := tenants(30, nil, tc.changes...)
			f.intents[idOf(ours)] = intent{intentFormat + "now", noon().Add(-time.Minute)}
			f.intents[wholeList] = intent{intentFormat + "list", noon().Add(-time.Minute)}
			r := decideRemovals(f)
			assert.Equal(t, tc.removed, len(r.remove) == 30, "%d are removed", len(r.remove))
			assert.Equal(t, tc.removed, len(r.held) == 0, "%d are held", len(r.held))
		})
	}
}

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
	replaced := func(s *scene) { s.pages = nil; s.placement.UID = "another" }
	knew := func(members clustersets.Members) func(*fleetFacts) {
		return func(f *fleetFacts) {
			f.earlier = map[types.NamespacedName]earlier{keyOfTheirs(): {"q", members, true, false}}
		}
	}
	all, err := clustersets.MembersOf([]string{clustersets.Global}, nil)
	require.NoError(t, err)
	byOurs, byTheirs := droppedBy(keyOfOurs()), droppedBy(keyOfTheirs())
	foreign := func(f *fleetFacts) { f.own = false }
	lately := func(f *fleetFacts) { f.candidates[0].absence.apart = noon().Add(-10 * time.Second) }
	tests := map[string]struct {
		theirs  func(*scene)
		changes []func(*fleetFacts)
		removed bool
	}{
		"one that is misconfigured":                            {wrong, []func(*fleetFacts){byOurs}, true},
		"also when it dropped the cluster":                     {wrong, []func(*fleetFacts){byTheirs, knew(nil)}, true},
		"but where it may select the cluster":                  {wrong, []func(*fleetFacts){byOurs, inTheirs}, false},
		"but where it selected it":                             {wrong, []func(*fleetFacts){byOurs, func(f *fleetFacts) { f.placements[1].Groups["c000"] = fleet.Group{} }}, false},
		"but where a set has a wrong selector":                 {wrong, []func(*fleetFacts){byOurs, func(f *fleetFacts) { delete(f.inSets, "theirs") }}, false},
		"but where it has reached the cluster a moment ago":    {wrong, []func(*fleetFacts){byOurs, lately}, false},
		"but not at first sight after a restart":               {wrong, []func(*fleetFacts){unseen}, false},
		"one that is gone":                                     {gone, []func(*fleetFacts){byOurs}, true},
		"but not of one that may have dropped the cluster":     {gone, []func(*fleetFacts){unseen}, false},
		"but not where its binding went before":                {gone, []func(*fleetFacts){byTheirs, knew(all)}, false},
		"but where the cluster left its set":                   {gone, []func(*fleetFacts){byTheirs, knew(nil)}, true},
		"one that is going":                                    {going, []func(*fleetFacts){byTheirs, knew(nil)}, true},
		"but not where its binding went":                       {going, []func(*fleetFacts){byTheirs, knew(all)}, false},
		"one that is created again, before its binding":        {replaced, []func(*fleetFacts){byTheirs, knew(all)}, false},
		"one that is created again, and never had the cluster": {replaced, []func(*fleetFacts){byTheirs, knew(nil)}, true},
		"one of another scheduler":                             {others, []func(*fleetFacts){byOurs}, true},
		"but not where that dropped the cluster":               {others, []func(*fleetFacts){byTheirs, knew(nil)}, false},
		"nor on a hub that another scheduler decides for":      {wrong, []func(*fleetFacts){byTheirs, knew(nil), foreign}, false},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			r := decideRemovals(tenants(1, tc.theirs, tc.changes...))
			assert.Equal(t, tc.removed, len(r.remove) == 1, "%v", r.kept)
			assert.Equal(t, tc.removed, r.scoped, "bindings and sets are asked from the API server before")
		})
	}
}
