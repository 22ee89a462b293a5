package layout

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// takenName is the name of an object that does not belong to the Placement.
const takenName = "p-decision-4"

// readSlices reads PlacementDecisions, one a line: name|index|group|mark|size|owner|clusters. Names are unique, as in an
// API server, and takenName is that of another object.
func readSlices(text string) []*clusterv1beta1.PlacementDecision {
	var all []*clusterv1beta1.PlacementDecision
	seen := map[string]bool{takenName: true}
	for line := range strings.SplitSeq(text, "\n") {
		parts := append(strings.SplitN(line, "|", 7), make([]string, 7)...)
		if seen[parts[0]] {
			continue
		}
		seen[parts[0]] = true
		o := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Name: parts[0], Namespace: "ns",
			Labels: map[string]string{
				names.LabelPlacement: "p", names.LabelDecisionGroupIndex: parts[1], names.LabelDecisionGroupName: parts[2],
			},
			Annotations: map[string]string{
				names.AnnotationDecisionGroup: parts[3], names.AnnotationDecisionGroupSize: parts[4],
			},
		}}
		if parts[5] != "" {
			o.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(parts[5]), Controller: new(true)}}
		}
		o.Status.Decisions = decisions(strings.Fields(parts[6]))
		all = append(all, o)
	}
	return all
}

// FuzzPlanOfAnySlices plans over PlacementDecisions that another client wrote: the result is what the API describes,
// whatever was there, no cluster that stays is missing after any of the writes, and a second plan writes nothing.
func FuzzPlanOfAnySlices(f *testing.F) {
	f.Add("p-decision-1|0|||100%|p-uid|a b c", "a b c d", "e", 2)
	f.Add("p-decision-1|0|a|a/0|2|p-uid|a b\np-decision-2|1|a|a/1|2|p-uid|c\nq|x|b|/|0||a a", "b c", "a d e", -50)
	f.Add("p-decision-01|9223372036854775807|b|b/7|1|old|a\np-decision-2|-1|a|b/-1|||b\np-decision-3|1||/0|||c", "a c", "b", 1)
	f.Add(takenName, "0", "0", 57)
	f.Fuzz(func(t *testing.T, text, first, second string, size int) {
		number := intstr.FromInt32(int32(size % 1000))
		if size < 0 {
			number = intstr.FromString(fmt.Sprint(-(size % 101), "%"))
		}
		limit, err := ParseSize(number)
		if err != nil {
			return
		}
		r := Request{
			Placement: placement(), Groups: []string{"a", "b"}, Size: limit, Selected: map[string]int{},
			Have: readSlices(text), Taken: []string{takenName},
		}
		for i, clusters := range []string{first, second} {
			for _, name := range strings.Fields(clusters) {
				r.Selected[name] = i + len(name)%2
			}
		}
		before := deepCopies(r.Have)
		l := Plan(r)
		require.Equal(t, before, r.Have, "what was observed is not changed")
		checkLayout(t, r, l)
		r.Have = carryOut(t, r, l)
		for _, slice := range Plan(r).Slices {
			assert.False(t, slice.Changed(), "a second plan writes nothing: %v, %v", slice.Have, slice.Want)
		}
	})
}

func deepCopies(all []*clusterv1beta1.PlacementDecision) []*clusterv1beta1.PlacementDecision {
	var copies []*clusterv1beta1.PlacementDecision
	for _, o := range all {
		copies = append(copies, o.DeepCopy())
	}
	return copies
}

// checkLayout checks a layout against the API: every selected cluster once, in groups and objects that are not too
// large.
func checkLayout(t *testing.T, r Request, l Layout) {
	t.Helper()
	wanted, seen := written(l.Slices), map[string]int{}
	for _, o := range wanted {
		seen[o.Name]++
		assert.NotContains(t, r.Taken, o.Name)
		assert.LessOrEqual(t, len(o.Status.Decisions), sliceSize)
		assert.Regexp(t, `^p-decision-[1-9][0-9]*$`, o.Name)
	}
	for _, group := range l.Groups {
		assert.LessOrEqual(t, int(group.ClustersCount), r.Size.Of(len(r.Selected)))
		for _, name := range group.Decisions {
			assert.Equal(t, 1, seen[name], "%s is the name of one object", name)
			delete(seen, name)
		}
	}
	assert.Empty(t, seen, "each object is in one group")
	var selected []string
	for name := range r.Selected {
		selected = append(selected, name)
	}
	slices.Sort(selected)
	assert.Equal(t, append([]string{}, selected...), union(wanted))
}

// carryOut writes a layout, one object after the other, and checks after each write that no cluster that stays is
// missing.
func carryOut(t *testing.T, r Request, l Layout) []*clusterv1beta1.PlacementDecision {
	t.Helper()
	there := map[string]*clusterv1beta1.PlacementDecision{}
	for _, o := range r.Have {
		there[o.Name] = o
	}
	list := func() []*clusterv1beta1.PlacementDecision {
		var all []*clusterv1beta1.PlacementDecision
		for _, o := range there {
			all = append(all, o)
		}
		return all
	}
	stays := slices.DeleteFunc(union(list()), func(name string) bool { _, is := r.Selected[name]; return !is })
	for _, slice := range l.Slices {
		if slice.Want != nil {
			there[slice.Want.Name] = slice.Want
		} else {
			delete(there, slice.Have.Name)
		}
		assert.Subset(t, union(list()), stays)
	}
	return list()
}
