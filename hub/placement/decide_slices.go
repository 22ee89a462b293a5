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
	// group and part identify the decision group of the slice; index is the index of the group.
	group       string
	part, index int
	// have is the existing object; nil for a slice to be created.
	have *clusterv1beta1.PlacementDecision
	// want is the desired object; nil for a slice to be deleted.
	want *clusterv1beta1.PlacementDecision
	// list are the desired decisions.
	list []clusterv1beta1.ClusterDecision
	// gains reports whether the slice gains clusters; loses reports whether it loses one that stays selected.
	gains, loses bool
}

// changed reports whether a slice must be written.
func (p decisionSlice) changed() bool {
	return p.have == nil || p.want == nil || !equality.Semantic.DeepEqual(p.have, p.want)
}

// decisions returns the observed decisions.
func (p decisionSlice) decisions() []clusterv1beta1.ClusterDecision {
	if p.have == nil {
		return nil
	}
	return p.have.Status.Decisions
}

// newSlice adds a slice with the lowest number that is free.
func (p *planner) newSlice() *decisionSlice {
	for p.used[sliceName(p.placement, p.next)] {
		p.next++
	}
	number := p.next
	p.next++
	added := &decisionSlice{number: number, gains: true}
	p.slices = append(p.slices, added)
	return added
}

// finish numbers the decision groups, renders the slices, and drops empty ones; without any cluster one slice stays.
func (p *planner) finish() layout {
	var l layout
	for _, b := range p.buckets {
		for _, in := range b.parts {
			if in.count > 0 {
				p.finishPart(&l, b.name, in)
			}
		}
	}
	if len(l.groups) == 0 {
		spare := slices.IndexFunc(p.slices, func(slice *decisionSlice) bool { return slice.number > 0 })
		if spare < 0 {
			p.newSlice()
			spare = len(p.slices) - 1
		}
		p.finishPart(&l, "", &part{slices: p.slices[spare : spare+1]})
	}
	for _, slice := range p.slices {
		l.slices = append(l.slices, *slice)
	}
	slices.SortStableFunc(l.slices, writeOrder)
	return l
}

// finishPart renders the slices of a part, which becomes the next decision group.
func (p *planner) finishPart(l *layout, group string, in *part) {
	status := clusterv1beta1.DecisionGroupStatus{
		DecisionGroupIndex: int32(len(l.groups)), //nolint:gosec // there are fewer groups than an int32 can count
		DecisionGroupName:  group,
		ClustersCount:      int32(in.count), //nolint:gosec // a hub has fewer clusters than an int32 can count
	}
	slices.SortFunc(in.slices, func(a, b *decisionSlice) int { return cmp.Compare(a.number, b.number) })
	for _, slice := range in.slices {
		if len(slice.list) == 0 && in.count > 0 {
			continue
		}
		slice.group, slice.part, slice.index = group, in.number, len(l.groups)
		slice.want = p.render(slice)
		status.Decisions = append(status.Decisions, slice.want.Name)
	}
	l.groups = append(l.groups, status)
}

// writeOrder sorts slices in the order of writing. Those that gain clusters come first, so that no reader misses a
// cluster that stays. The others follow so that the indexes have no gap while slices are written one by one, where
// groups are only added or removed: indexes that grow from the lowest, then those that shrink and deletions from the
// highest.
func writeOrder(a, b decisionSlice) int {
	const gains, grows, shrinks = 0, 1, 2
	key := func(p decisionSlice) (class, position int) {
		switch {
		case p.gains:
			return gains, p.index
		case p.want != nil && p.index >= observedIndex(p.have):
			return grows, p.index
		}
		return shrinks, -observedIndex(p.have)
	}
	ofA, atA := key(a)
	ofB, atB := key(b)
	return cmp.Or(cmp.Compare(ofA, ofB), cmp.Compare(atA, atB), cmp.Compare(a.number, b.number))
}

// observedIndex returns the index in the label of a slice; 0 without a valid one.
func observedIndex(o *clusterv1beta1.PlacementDecision) int {
	if o == nil {
		return 0
	}
	index, err := strconv.Atoi(o.Labels[names.LabelDecisionGroupIndex])
	if err != nil {
		return 0
	}
	return index
}

// numbered returns the existing slices sorted by number. Those with a foreign name, and those of an earlier Placement
// of the same name, get number 0 and are deleted.
func numbered(placement *clusterv1beta1.Placement, have []*clusterv1beta1.PlacementDecision) []*decisionSlice {
	all := make([]*decisionSlice, 0, len(have))
	for _, o := range have {
		number, err := strconv.Atoi(strings.TrimPrefix(o.Name, placement.Name+"-decision-"))
		owner := metav1.GetControllerOf(o)
		if err != nil || number < 1 || sliceName(placement, number) != o.Name ||
			(owner != nil && owner.UID != placement.UID) {
			number = 0
		}
		slice := &decisionSlice{number: number, have: o}
		slice.group, slice.part = identity(o)
		all = append(all, slice)
	}
	slices.SortFunc(all, func(a, b *decisionSlice) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.have.Name, b.have.Name))
	})
	return all
}

// render returns the desired object of a slice (docs/reference/hub.md, "Placement decisions").
func (p *planner) render(slice *decisionSlice) *clusterv1beta1.PlacementDecision {
	want := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Name: sliceName(p.placement, slice.number), Namespace: p.placement.Namespace,
	}}
	if slice.have != nil {
		want = slice.have.DeepCopy()
	}
	if want.Labels == nil {
		want.Labels = map[string]string{}
	}
	want.Labels[names.LabelPlacement] = p.placement.Name
	want.Labels[names.LabelDecisionGroupIndex] = strconv.Itoa(slice.index)
	want.Labels[names.LabelDecisionGroupName] = slice.group
	annotate := func(key, value string) { metav1.SetMetaDataAnnotation(&want.ObjectMeta, key, value) }
	annotate(names.AnnotationStickyPages, "true")
	annotate(names.AnnotationDecisionGroup, slice.group+"/"+strconv.Itoa(slice.part))
	annotate(names.AnnotationDecisionGroupSize, p.size.String())
	if metav1.GetControllerOf(want) == nil {
		want.OwnerReferences = append(want.OwnerReferences, *metav1.NewControllerRef(p.placement, placementKind()))
	}
	slices.SortFunc(slice.list, func(a, b clusterv1beta1.ClusterDecision) int {
		return cmp.Compare(a.ClusterName, b.ClusterName)
	})
	// The API requires a list, even an empty one.
	want.Status.Decisions = append([]clusterv1beta1.ClusterDecision{}, slice.list...)
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
