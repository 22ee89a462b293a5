package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// scene is a Placement with its PlacementDecisions, which have been as they are for an hour.
type scene struct {
	placement *clusterv1beta1.Placement
	pages     []*clusterv1beta1.PlacementDecision
	own       bool
	since     time.Time
}

// decided is a Placement of another controller, with the clusters of each PlacementDecision.
func decided(pages ...[]string) *scene {
	s := &scene{since: noon().Add(-time.Hour), placement: &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", Generation: 1},
	}}
	status := &s.placement.Status
	status.Conditions = []metav1.Condition{{Type: clusterv1beta1.PlacementConditionSatisfied}}
	status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{{}}
	for i, clusters := range pages {
		s.pages = append(s.pages, pageOf(i+1, clusters...))
		status.NumberOfSelectedClusters += int32(len(clusters))
		status.DecisionGroups[0].Decisions = append(status.DecisionGroups[0].Decisions, s.pages[i].Name)
	}
	return s
}

// but changes a scene.
func (s *scene) but(changes ...func(*scene)) *scene {
	for _, change := range changes {
		change(s)
	}
	return s
}

// known returns what is known about the decisions.
func (s *scene) known() *Decisions {
	return NewDecisions(Seen{Key: types.NamespacedName{Namespace: "ns", Name: "p"}, Placement: s.placement, Pages: s.pages, Own: s.own}, s.since)
}

func pageOf(number int, clusters ...string) *clusterv1beta1.PlacementDecision {
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("p-decision-%d", number), Labels: map[string]string{names.LabelDecisionGroupIndex: "0"},
		OwnerReferences: []metav1.OwnerReference{{UID: "p", Controller: new(true)}},
	}}
	for _, c := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: c})
	}
	return decision
}

// ours makes our own placement the one that decided.
func ours(s *scene) {
	s.own = true
	s.placement.Status.Conditions = append(s.placement.Status.Conditions, Mark(s.placement.Generation, s.pages))
}

// byAnEarlierVersion makes our own placement the one that decided, without the mark.
func byAnEarlierVersion(s *scene) { s.own = true }

func misconfiguredNow(s *scene) {
	s.placement.Generation++
	s.placement.Status.Conditions = append(s.placement.Status.Conditions, metav1.Condition{
		Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue, Message: "bad field",
	})
}

func just(s *scene)      { s.since = noon().Add(-time.Second) }
func undecided(s *scene) { s.placement.Status = clusterv1beta1.PlacementStatus{} }
func scheduled(s *scene) {
	s.placement.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
}
func edited(s *scene) { s.placement.Generation = 3 }
func counted(n int32) func(*scene) {
	return func(s *scene) { s.placement.Status.NumberOfSelectedClusters = n }
}

func writtenAt(at time.Time) func(*scene) {
	return func(s *scene) {
		s.pages[0].ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(at))}}
	}
}

func createdAt(at time.Time) func(*scene) {
	return func(s *scene) { s.placement.CreationTimestamp = metav1.NewTime(at) }
}

// Shows: hub/quiet-decisions, hub/decided-mark
func TestWhenAPlacementSaysSurelyThatAClusterIsOut(t *testing.T) {
	one, two := []string{"a"}, []string{"b"}
	tests := map[string]struct {
		s *scene
		// want is why no cluster is unselected, and wake when that may change by itself.
		want string
		wake time.Time
		// whole reports whether the PlacementDecisions are complete all the same, so that a rollout goes on.
		whole bool
	}{
		"one page that agrees with the status":                       {s: decided(one), whole: true},
		"no clusters at all":                                         {s: decided(nil), whole: true},
		"several pages that have been quiet":                         {s: decided(one, two), whole: true},
		"pages of our own that are marked":                           {s: decided(one, two).but(ours), whole: true},
		"when nobody reports on the Placement":                       {s: decided(one).but(undecided), whole: true},
		"when somebody else schedules it":                            {s: decided(one).but(scheduled, counted(7)), whole: true},
		"whatever the clock of the API server":                       {s: decided(one).but(writtenAt(noon().Add(time.Hour))), whole: true},
		"not a page that was just written":                           {decided(one).but(just), "changed a moment ago", noon().Add(2 * time.Second), true},
		"not pages of our own that just came":                        {decided(one, two).but(ours, just), "changed a moment ago", noon().Add(2 * time.Second), true},
		"not several pages, one just written":                        {decided(one, two).but(just), "changed a moment ago", noon().Add(FailoverPeriod - time.Second), true},
		"not a page written after it was seen":                       {decided(one).but(writtenAt(noon().Add(-time.Second)), func(s *scene) { s.since = noon().Add(-3 * time.Second) }), "changed a moment ago", noon().Add(2 * time.Second), true},
		"not without the Placement":                                  {s: decided(one).but(func(s *scene) { s.placement = nil }), want: "placement ns/p does not exist"},
		"not without any page":                                       {s: decided(), want: "has no PlacementDecision"},
		"not with a page of an earlier Placement":                    {s: decided(one).but(func(s *scene) { s.placement.UID = "new" }), want: "earlier"},
		"not before the Placement has decided":                       {s: decided(nil).but(undecided), want: "placement ns/p has not decided yet"},
		"not before our own has written the mark":                    {s: decided(one).but(undecided, byAnEarlierVersion), want: "placement ns/p has not decided yet"},
		"not before another has decided":                             {s: decided(nil).but(undecided, scheduled), want: "has not decided yet"},
		"not when the status counts otherwise":                       {s: decided(one).but(counted(2)), want: "name 1 clusters, its status says 2"},
		"not when the status names other pages":                      {s: decided(one, two).but(func(s *scene) { s.placement.Status.DecisionGroups[0].Decisions = []string{"p-decision-1"} }), want: "its status names"},
		"not when the mark is about others":                          {s: decided(one, two).but(ours, func(s *scene) { s.pages[1] = pageOf(2, "c") }), want: "is writing its PlacementDecisions"},
		"not when the mark is about other groups":                    {s: decided(one, two).but(ours, func(s *scene) { s.pages[1].Labels = map[string]string{names.LabelDecisionGroupName: "canary"} }), want: "is writing"},
		"not when the mark has one page more":                        {s: decided(one, nil).but(ours, func(s *scene) { s.pages = s.pages[:1] }), want: "is writing"},
		"not before our own replaces an earlier version's decision":  {s: decided(one).but(byAnEarlierVersion), want: "has not decided yet"},
		"not while the Placement is going":                           {s: decided(one).but(func(s *scene) { s.placement.DeletionTimestamp = new(metav1.NewTime(noon())) }), want: "is being deleted", whole: true},
		"not when the Placement is misconfigured":                    {s: decided(one).but(misconfiguredNow), want: "bad field", whole: true},
		"not when our own is misconfigured":                          {s: decided(one).but(ours, misconfiguredNow), want: "bad field", whole: true},
		"not when our own is misconfigured since an earlier version": {s: decided(one).but(byAnEarlierVersion, misconfiguredNow), want: "bad field", whole: true},
		"not when the Placement was edited since":                    {s: decided(one).but(edited, func(s *scene) { s.placement.Status.Conditions[0].ObservedGeneration = 2 }), want: "is not decided again yet", whole: true},
		"not when our own was edited since":                          {s: decided(one).but(ours, edited, func(s *scene) { s.placement.Status.Conditions[0].ObservedGeneration = 3 }), want: "is not decided again yet", whole: true},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			d := tc.s.known()
			wake, err := d.Unselected("x", noon())
			assert.Equal(t, tc.wake, wake)
			assert.Equal(t, tc.whole, d.Incomplete == nil, "%v", d.Incomplete)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestAClusterThatMayMoveToAnotherPageIsWaitedForLonger(t *testing.T) {
	full := func(n int) []string {
		clusters := make([]string, n)
		for i := range clusters {
			clusters[i] = fmt.Sprintf("c%02d%04d", n, i)
		}
		return clusters
	}
	per := func(perGroup intstr.IntOrString) func(*scene) {
		return func(s *scene) { s.placement.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = perGroup }
	}
	tests := map[string]struct {
		s    *scene
		want bool
	}{
		"not on one page with room":             {decided(full(99)), false},
		"on one page that is full":              {decided(full(100)), true},
		"on several pages":                      {decided(full(100), full(50)), true},
		"on a page of a full group":             {decided(full(20)).but(per(intstr.FromInt32(20))), true},
		"not on a page of a group with room":    {decided(full(19)).but(per(intstr.FromInt32(20))), false},
		"on a page whose size depends on all":   {decided(full(20)).but(per(intstr.FromString("30%"))), true},
		"not on a page of the one group of all": {decided(full(20)).but(per(intstr.FromString("100%"))), false},
		"where groups have names":               {decided(full(50)).but(func(s *scene) { s.pages[0].Labels[names.LabelDecisionGroupName] = "canary" }), true},
		"where groups are about to have names": {decided(full(50)).but(func(s *scene) {
			s.placement.Spec.DecisionStrategy.GroupStrategy.DecisionGroups = []clusterv1beta1.DecisionGroup{{GroupName: "x"}}
		}), true},
		"on a later page that is alone":                    {decided(full(50)).but(func(s *scene) { s.pages[0].Labels[names.LabelDecisionGroupIndex] = "1" }), true},
		"on a page of fewer clusters than the status says": {decided(full(50)).but(scheduled, counted(150)), true},
		"on a page of a Placement that was created again": {
			decided(full(50)).but(undecided, createdAt(noon()), writtenAt(noon().Add(FailoverPeriod-time.Second))), true,
		},
		"not where no status is ever written":         {decided(full(50)).but(undecided, createdAt(noon()), writtenAt(noon().Add(FailoverPeriod))), false},
		"nowhere when we write the pages":             {decided(full(100), full(50)).but(ours), false},
		"when others schedule what we marked once":    {decided(full(100), full(50)).but(ours, scheduled), true},
		"when we do not schedule what we marked once": {decided(full(100), full(50)).but(ours, func(s *scene) { s.own = false }), true},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			known := tc.s.known()
			assert.Equal(t, tc.s.own && !tc.want, known.Own)
			for after, certain := range map[time.Duration]bool{
				QuietPeriod - 1: false, QuietPeriod: !tc.want, FailoverPeriod - 1: !tc.want, FailoverPeriod: true,
			} {
				_, err := known.Unselected("x", tc.s.since.Add(after))
				assert.Equal(t, certain, err == nil, "after %s", after)
			}
		})
	}
}

func TestDecisionsAreAsOldAsTheirContent(t *testing.T) {
	s := decided([]string{"a"})
	first := s.known()
	next := func(now time.Time) *Decisions {
		return NewDecisions(Seen{Key: first.Key, Placement: s.placement.DeepCopy(), Pages: s.pages, Own: s.own, Before: first}, now)
	}
	assert.Same(t, first, next(noon()), "nothing changed")
	s.placement.Labels = map[string]string{"x": "y"}
	assert.Same(t, first, next(noon()), "nothing that counts changed")
	s.placement.Generation++
	edited := next(noon())
	assert.Equal(t, noon(), edited.since)
	assert.True(t, first.Selects("a"))
	assert.False(t, first.Selects("b"))
	assert.Equal(t, Group{Index: 0}, first.Groups["a"])
}

func TestADecisionThatAnEditDoesNotChangeIsBelieved(t *testing.T) {
	s := decided([]string{"a"}).but(ours)
	d := s.known()
	again := func() error {
		d = NewDecisions(Seen{Key: d.Key, Placement: s.placement.DeepCopy(), Pages: s.pages, Own: true, Before: d}, s.since)
		_, err := d.Unselected("x", noon())
		return err
	}
	s.placement.Generation++
	require.ErrorContains(t, again(), "not decided again yet")
	s.placement.Status.Conditions[1].ObservedGeneration++
	require.NoError(t, again())
	s.placement.Annotations = map[string]string{names.AnnotationSetBindings: names.SetBindingsHonoured}
	require.NoError(t, again())
	assert.Equal(t, s.placement.Annotations, d.Placement.Annotations, "it is an edit")
}
