package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// sliceSize is the maximum number of clusters in one PlacementDecision.
const sliceSize = 100

// decisionSlice is one PlacementDecision, observed and desired. Together, the slices of a Placement are its decisions.
type decisionSlice struct {
	// number is the n in its name, from 1; 0 for a slice that is to be deleted.
	number int
	// have is the existing object; nil for a slice to be created.
	have *clusterv1beta1.PlacementDecision
	// want is the desired object; nil for a slice to be deleted.
	want *clusterv1beta1.PlacementDecision
	// gains reports whether the slice gains clusters.
	gains bool
}

// changed reports whether a slice must be written.
func (p decisionSlice) changed() bool {
	return p.have == nil || p.want == nil || !equality.Semantic.DeepEqual(p.have, p.want)
}

// planSlices distributes the selected clusters: each stays in its slice, new ones fill free places, and new slices are
// added at the end. Empty slices are deleted, except one. Slices that gain clusters come first, so that no reader
// misses a cluster that stays.
func planSlices(
	placement *clusterv1beta1.Placement, selected []string, have []*clusterv1beta1.PlacementDecision,
) []decisionSlice {
	decisionSlices := numbered(placement, have)
	missing := make(map[string]bool, len(selected))
	for _, name := range selected {
		missing[name] = true
	}
	kept := make([][]clusterv1beta1.ClusterDecision, len(decisionSlices))
	for i, p := range decisionSlices {
		for _, decision := range p.have.Status.Decisions {
			if missing[decision.ClusterName] && len(kept[i]) < sliceSize && p.number > 0 {
				delete(missing, decision.ClusterName)
				kept[i] = append(kept[i], decision)
			}
		}
	}
	var rest []string
	for _, name := range selected {
		if missing[name] {
			rest = append(rest, name)
		}
	}
	for i := range decisionSlices {
		if decisionSlices[i].number == 0 {
			continue
		}
		n := min(len(rest), sliceSize-len(kept[i]))
		decisionSlices[i].gains = n > 0
		decisionSlices[i].want = render(placement, decisionSlices[i], append(kept[i], decisions(rest[:n])...))
		rest = rest[n:]
	}
	return finish(placement, decisionSlices, rest)
}

// finish adds the slices that are still needed, drops empty ones, and sorts all in the order of writing.
func finish(placement *clusterv1beta1.Placement, decisionSlices []decisionSlice, rest []string) []decisionSlice {
	full := 0
	for i := range decisionSlices {
		if decisionSlices[i].want != nil && len(decisionSlices[i].want.Status.Decisions) > 0 {
			full++
		}
	}
	spare := full == 0 && len(rest) == 0
	for i := range decisionSlices {
		if decisionSlices[i].want == nil || len(decisionSlices[i].want.Status.Decisions) > 0 {
			continue
		}
		if spare {
			spare = false
			continue
		}
		decisionSlices[i].want = nil
	}
	next := 1
	for len(rest) > 0 || spare {
		for taken(placement, decisionSlices, next) {
			next++
		}
		n := min(len(rest), sliceSize)
		added := decisionSlice{number: next, gains: true}
		added.want = render(placement, added, decisions(rest[:n]))
		decisionSlices = append(decisionSlices, added)
		rest, spare = rest[n:], false
	}
	slices.SortStableFunc(decisionSlices, func(a, b decisionSlice) int { return cmp.Compare(order(a), order(b)) })
	return decisionSlices
}

// taken reports whether a slice with this number exists, of any writer.
func taken(placement *clusterv1beta1.Placement, decisionSlices []decisionSlice, number int) bool {
	return slices.ContainsFunc(decisionSlices, func(p decisionSlice) bool {
		return p.number == number || (p.have != nil && p.have.Name == sliceName(placement, number))
	})
}

// order sorts slices that gain clusters first and deletions last.
func order(p decisionSlice) int {
	switch {
	case p.gains:
		return 0
	case p.want != nil:
		return 1
	}
	return 2
}

// numbered sorts the existing slices by number. Those with a foreign name, and those of an earlier Placement of the
// same name, get number 0 and are deleted.
func numbered(placement *clusterv1beta1.Placement, have []*clusterv1beta1.PlacementDecision) []decisionSlice {
	decisionSlices := make([]decisionSlice, 0, len(have))
	for _, o := range have {
		number, err := strconv.Atoi(strings.TrimPrefix(o.Name, placement.Name+"-decision-"))
		owner := metav1.GetControllerOf(o)
		if err != nil || number < 1 || sliceName(placement, number) != o.Name ||
			(owner != nil && owner.UID != placement.UID) {
			number = 0
		}
		decisionSlices = append(decisionSlices, decisionSlice{number: number, have: o})
	}
	slices.SortFunc(decisionSlices, func(a, b decisionSlice) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.have.Name, b.have.Name))
	})
	return decisionSlices
}

// render returns the desired slice with these decisions (docs/reference/hub.md, "Placement decisions").
func render(
	placement *clusterv1beta1.Placement, p decisionSlice, list []clusterv1beta1.ClusterDecision,
) *clusterv1beta1.PlacementDecision {
	want := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Name: sliceName(placement, p.number), Namespace: placement.Namespace,
	}}
	if p.have != nil {
		want = p.have.DeepCopy()
	}
	if want.Labels == nil {
		want.Labels = map[string]string{}
	}
	want.Labels[names.LabelPlacement] = placement.Name
	want.Labels[names.LabelDecisionGroupIndex] = "0"
	want.Labels[names.LabelDecisionGroupName] = ""
	metav1.SetMetaDataAnnotation(&want.ObjectMeta, names.AnnotationStickyPages, "true")
	if metav1.GetControllerOf(want) == nil {
		want.OwnerReferences = append(want.OwnerReferences, *metav1.NewControllerRef(placement,
			placementKind()))
	}
	slices.SortFunc(list, func(a, b clusterv1beta1.ClusterDecision) int {
		return cmp.Compare(a.ClusterName, b.ClusterName)
	})
	// The API requires a list, even an empty one.
	want.Status.Decisions = append([]clusterv1beta1.ClusterDecision{}, list...)
	return want
}

// honour marks slices whose clusters are all in bound sets.
func honour(decisionSlices []decisionSlice) {
	for _, p := range decisionSlices {
		if p.want != nil {
			metav1.SetMetaDataAnnotation(&p.want.ObjectMeta, names.AnnotationSetBindings, names.SetBindingsHonoured)
		}
	}
}

func placementKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{
		Group: clusterv1beta1.GroupName, Version: clusterv1beta1.GroupVersion.Version, Kind: "Placement",
	}
}

func decisions(clusters []string) []clusterv1beta1.ClusterDecision {
	list := make([]clusterv1beta1.ClusterDecision, len(clusters))
	for i, name := range clusters {
		list[i].ClusterName = name
	}
	return list
}

func sliceName(placement *clusterv1beta1.Placement, number int) string {
	return fmt.Sprintf("%s-decision-%d", placement.Name, number)
}
