package install

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/quiet-decisions
func TestWhenAPlacementSaysSurelyThatAClusterIsOut(t *testing.T) {
	paged := func(changes ...func(*scene)) *scene {
		p := decided("p", "a", "b")
		p.pages = []*clusterv1beta1.PlacementDecision{pageOf("p", 1, "a"), pageOf("p", 2, "b")}
		p.placement.Status.DecisionGroups[0].Decisions = []string{"p-decision-2", "p-decision-1"}
		return p.but(changes...)
	}
	just := func(s *scene) { s.since = noon().Add(-time.Second) }
	clockAhead := func(s *scene) {
		s.pages[1].ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(noon().Add(time.Hour)))}}
	}
	sticky := func(s *scene) {
		s.own = true
		for _, decision := range s.pages {
			decision.Annotations = map[string]string{names.AnnotationStickyPages: "true"}
		}
	}
	tests := map[string]struct {
		p    *scene
		want string
		wake time.Time
	}{
		"one page that agrees with the status": {p: decided("p", "a")},
		"no clusters at all":                   {p: decided("p")},
		"several pages that have been quiet":   {p: paged()},
		"not a page that was just written": {
			p: decided("p", "a").but(just), want: "changed a moment ago", wake: noon().Add(2 * time.Second),
		},
		"not pages of our own that were just written": {
			p: paged(just, sticky), want: "changed a moment ago", wake: noon().Add(2 * time.Second),
		},
		"not several pages of which one was just written": {
			p: paged(just), want: "changed a moment ago", wake: noon().Add(FailoverPeriod - time.Second),
		},
		"not a page that was written later than it was seen": {
			p: decided("p", "a").but(func(s *scene) {
				s.since = noon().Add(-3 * time.Second)
				s.pages[0].ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(noon().Add(-time.Second)))}}
			}), want: "changed a moment ago", wake: noon().Add(2 * time.Second),
		},
		"whatever the clock of the API server": {p: paged(clockAhead)},
		"not without the Placement":            {p: missing(), want: "placement ns/p does not exist"},
		"not while the Placement is going": {p: decided("p").but(func(s *scene) {
			s.placement.DeletionTimestamp = new(metav1.NewTime(noon()))
		}), want: "is being deleted"},
		"not without any page":                    {p: decided("p").but(func(s *scene) { s.pages = nil }), want: "has no PlacementDecision"},
		"not with a page of an earlier Placement": {p: decided("p").but(func(s *scene) { s.placement.UID = "new" }), want: "earlier"},
		"not when the status counts otherwise": {p: decided("p", "a").but(func(s *scene) {
			s.placement.Status.NumberOfSelectedClusters = 2
		}), want: "name 1 clusters, its status says 2"},
		"not when the status names other pages": {p: paged(func(s *scene) {
			s.placement.Status.DecisionGroups[0].Decisions = []string{"p-decision-1"}
		}), want: "its status names"},
		"not when the Placement is misconfigured": {p: decided("p", "a").but(func(s *scene) {
			s.placement.Status.Conditions = []metav1.Condition{{
				Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue, Message: "bad field",
			}}
		}), want: "bad field"},
		"not when the Placement was edited since": {p: decided("p", "a").but(func(s *scene) {
			s.placement.Generation, s.placement.Status.Conditions[0].ObservedGeneration = 3, 2
		}), want: "is not decided again yet"},
		"when nobody reports on the Placement": {p: decided("p", "a").but(func(s *scene) {
			s.placement.Status = clusterv1beta1.PlacementStatus{}
		})},
		"when somebody else schedules the Placement": {p: decided("p", "a").but(func(s *scene) {
			s.placement.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
			s.placement.Status.NumberOfSelectedClusters = 7
		})},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			const between = "ab" // It may be on its way from the first page to the second.
			wake, err := tc.p.known().Unselected(between, noon())
			assert.Equal(t, tc.wake, wake)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
			r := decideRemovals(removalOf(with(ready(false), installed), decided("q").known(), tc.p.known()))
			assert.Empty(t, r.remove)
		})
	}
}

func TestAClusterThatMayMoveToAnotherPageIsWaitedForLonger(t *testing.T) {
	full := func(name string, number, from, n int) *clusterv1beta1.PlacementDecision {
		clusters := make([]string, n)
		for i := range clusters {
			clusters[i] = fmt.Sprintf("c%04d", from+i*2)
		}
		return pageOf(name, number, clusters...)
	}
	of := func(pages ...*clusterv1beta1.PlacementDecision) *scene {
		s := decided("p")
		s.pages, s.placement.Status = pages, clusterv1beta1.PlacementStatus{}
		return s
	}
	per := func(perGroup intstr.IntOrString) func(*scene) {
		return func(s *scene) { s.placement.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = perGroup }
	}
	two := func() *scene { return of(full("p", 1, 0, 100), full("p", 2, 300, 50)) }
	sticky := func(s *scene) {
		for _, p := range s.pages {
			p.Annotations = map[string]string{names.AnnotationStickyPages: "true"}
		}
	}
	// grouped makes the pages those of our own decision groups: name and number of each.
	grouped := func(groups ...string) func(*scene) {
		return func(s *scene) {
			s.own = true
			for i, group := range groups {
				name, _, _ := strings.Cut(group, "/")
				s.pages[i].Annotations[names.AnnotationDecisionGroup] = group
				s.pages[i].Labels = map[string]string{
					names.LabelDecisionGroupName:  name,
					names.LabelDecisionGroupIndex: strconv.Itoa(slices.Index(groups, group)),
				}
			}
		}
	}
	tests := map[string]struct {
		s       *scene
		cluster string
		want    bool
	}{
		"not between the names of a page":             {two(), "c0101", false},
		"not between the names of the second page":    {two(), "c0301", false},
		"not before the first name":                   {two(), "b", false},
		"not after the last name of a page with room": {two(), "d", false},
		"between two pages":                           {two(), "c0250", true},
		"after a full page":                           {of(full("p", 1, 0, 100)), "d", true},
		"not before a full page":                      {of(full("p", 1, 0, 100)), "b", false},
		"after a page of a full group":                {of(full("p", 1, 0, 20)).but(per(intstr.FromInt32(20))), "d", true},
		"not after a page of a group with room":       {of(full("p", 1, 0, 19)).but(per(intstr.FromInt32(20))), "d", false},
		"after a page whose size depends on all":      {of(full("p", 1, 0, 20)).but(per(intstr.FromString("30%"))), "d", true},
		"not after a page of the one group of all":    {of(full("p", 1, 0, 20)).but(per(intstr.FromString("100%"))), "d", false},
		"anywhere when pages overlap":                 {of(full("p", 1, 0, 50), full("p", 2, 1, 50)), "c0011", true},
		"anywhere when pages are in no order":         {of(pageOf("p", 1, "b", "a"), pageOf("p", 2, "c")), "aa", true},
		"not in one page without order":               {of(pageOf("p", 1, "b", "a")), "aa", false},
		"not beside empty pages":                      {of(full("p", 1, 0, 50), pageOf("p", 2)), "c0011", false},
		"anywhere when groups have names": {of(full("p", 1, 0, 50)).but(func(s *scene) {
			s.pages[0].Labels = map[string]string{names.LabelDecisionGroupName: "canary"}
		}), "c0011", true},
		"anywhere when groups are about to have names": {of(full("p", 1, 0, 50)).but(func(s *scene) {
			s.placement.Spec.DecisionStrategy.GroupStrategy.DecisionGroups = []clusterv1beta1.DecisionGroup{{GroupName: "x"}}
		}), "c0011", true},
		"nowhere when we write the pages":                {two().but(sticky, func(s *scene) { s.own = true }), "c0250", false},
		"when others write the pages that we wrote once": {two().but(sticky), "c0250", true},
		"when somebody writes several groups": {two().but(sticky, func(s *scene) {
			s.own = true
			s.pages[1].Labels = map[string]string{names.LabelDecisionGroupIndex: "1"}
		}), "c0250", true},
		"nowhere when we write several groups": {two().but(sticky, grouped("/0", "/1")), "c0250", false},
		"nowhere when we write groups with names": {
			two().but(sticky, grouped("canary/0", "/0")), "c0250", false,
		},
		"when others name the groups that we wrote once": {
			two().but(sticky, grouped("canary/0", "/0"), func(s *scene) {
				s.pages[1].Labels[names.LabelDecisionGroupName] = "canary"
			}), "c0250", true,
		},
		"when others number the groups that we wrote once": {
			two().but(sticky, grouped("/0", "/0"), func(s *scene) {
				s.pages[1].Labels[names.LabelDecisionGroupIndex] = "1"
			}), "c0250", true,
		},
		"when others merge the groups that we wrote once": {
			two().but(sticky, grouped("/0", "/1"), func(s *scene) {
				s.pages[1].Labels[names.LabelDecisionGroupIndex] = "0"
			}), "c0250", true,
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			known := tc.s.known()
			for after, certain := range map[time.Duration]bool{
				QuietPeriod - 1: false, QuietPeriod: !tc.want, FailoverPeriod - 1: !tc.want, FailoverPeriod: true,
			} {
				_, err := known.Unselected(tc.cluster, tc.s.since.Add(after))
				assert.Equal(t, certain, err == nil, "after %s", after)
			}
		})
	}
}

func TestDecisionsAreAsOldAsTheirContent(t *testing.T) {
	s := decided("p", "a")
	first := s.known()
	next := func(now time.Time) *Decisions {
		return NewDecisions(first.key, s.placement.DeepCopy(), s.pages, s.own, now, first)
	}
	assert.Same(t, first, next(noon()), "nothing changed")
	s.placement.Labels = map[string]string{"x": "y"}
	assert.Same(t, first, next(noon()), "nothing that counts changed")
	s.placement.Generation++
	edited := next(noon())
	assert.Equal(t, noon(), edited.since)
	assert.Equal(t, first.decided, edited.decided, "nobody decided since the edit")
	s.pages[0].ResourceVersion = "2"
	assert.Equal(t, noon(), next(noon()).decided)
	s.pages[0].ResourceVersion = ""
	s.placement.Status.NumberOfSelectedClusters++
	assert.Equal(t, noon(), next(noon()).decided)
	assert.True(t, first.Selects("a"))
	assert.False(t, first.Selects("b"))
}
