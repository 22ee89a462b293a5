package layout

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
	"github.com/spokelet/spokelet/internal/reconcile"
)

// sliceSize is the maximum number of clusters in one PlacementDecision.
const sliceSize = 100

// Slice is one PlacementDecision, observed and desired. Together, the slices of a Placement are its decisions.
type Slice struct {
	// number is the n in its name, from 1; 0 for a slice that is to be deleted.
	number int
	// group and part identify the decision group of the slice; index is the index of the group.
	group       string
	part, index int
	// Have is the existing object; nil for a slice to be created.
	Have *clusterv1beta1.PlacementDecision
	// Want is the desired object; nil for a slice to be deleted.
	Want *clusterv1beta1.PlacementDecision
	// list are the desired decisions.
	list []clusterv1beta1.ClusterDecision
	// Gains reports whether the slice gains clusters.
	Gains bool
	// loses reports whether it loses a cluster that stays selected.
	loses bool
}

// Name is the name of the object.
func (p Slice) Name() string {
	if p.Want != nil {
		return p.Want.Name
	}
	return p.Have.Name
}

// Kept reports whether a slice that is to be deleted is being deleted already, and a finalizer of another client keeps
// it.
func (p Slice) Kept() bool { return p.Want == nil && p.Have != nil && p.Have.DeletionTimestamp != nil }

// Changed reports whether a slice must be written.
func (p Slice) Changed() bool {
	if p.Kept() {
		return len(p.Have.Status.Decisions) > 0 // It goes no sooner for being deleted again, but it is to select nothing.
	}
	return p.Have == nil || p.Want == nil || !equality.Semantic.DeepEqual(p.Have, p.Want)
}

// decisions returns the observed decisions.
func (p Slice) decisions() []clusterv1beta1.ClusterDecision {
	if p.Have == nil {
		return nil
	}
	return p.Have.Status.Decisions
}

// newSlice adds a slice with the lowest number that is free.
func (p *planner) newSlice() *Slice {
	for p.used[sliceName(p.placement, p.next)] {
		p.next++
	}
	number := p.next
	p.next++
	added := &Slice{number: number, Gains: true}
	p.slices = append(p.slices, added)
	return added
}

// finish numbers the decision groups, renders the slices, and drops empty ones; without any cluster one slice stays.
func (p *planner) finish() Layout {
	var l Layout
	for _, b := range p.buckets {
		for _, in := range b.parts {
			if in.count > 0 {
				p.finishPart(&l, b.name, in)
			}
		}
	}
	if len(l.Groups) == 0 {
		spare := slices.IndexFunc(p.slices, func(slice *Slice) bool { return slice.number > 0 })
		if spare < 0 {
			p.newSlice()
			spare = len(p.slices) - 1
		}
		p.finishPart(&l, "", &part{slices: p.slices[spare : spare+1]})
	}
	for _, slice := range p.slices {
		l.Slices = append(l.Slices, *slice)
	}
	slices.SortStableFunc(l.Slices, writeOrder)
	return l
}

// finishPart renders the slices of a part, which becomes the next decision group.
func (p *planner) finishPart(l *Layout, group string, in *part) {
	status := clusterv1beta1.DecisionGroupStatus{
		DecisionGroupIndex: reconcile.Int32(len(l.Groups)),
		DecisionGroupName:  group,
		ClustersCount:      reconcile.Int32(in.count),
	}
	slices.SortFunc(in.slices, func(a, b *Slice) int { return cmp.Compare(a.number, b.number) })
	for _, slice := range in.slices {
		if len(slice.list) == 0 && in.count > 0 {
			continue
		}
		slice.group, slice.part, slice.index = group, in.number, len(l.Groups)
		slice.Want = p.render(slice)
		status.Decisions = append(status.Decisions, slice.Want.Name)
	}
	l.Groups = append(l.Groups, status)
}

// writeOrder sorts slices in the order of writing. Those that gain clusters come first, so that no reader misses a
// cluster that stays. The others follow so that the indexes have no gap while slices are written one by one, where
// groups are only added or removed: indexes that grow from the lowest, then those that shrink and deletions from the
// highest. Those that are kept come last: a policy may refuse to change what is being deleted.
func writeOrder(a, b Slice) int {
	const gains, grows, shrinks, kept = 0, 1, 2, 3
	key := func(p Slice) (class, position int) {
		switch {
		case p.Gains:
			return gains, p.index
		case p.Kept():
			return kept, 0
		case p.Want != nil && p.index >= observedIndex(p.Have):
			return grows, p.index
		}
		return shrinks, -observedIndex(p.Have)
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
func numbered(placement *clusterv1beta1.Placement, have []*clusterv1beta1.PlacementDecision) []*Slice {
	all := make([]*Slice, 0, len(have))
	for _, o := range have {
		number, err := strconv.Atoi(strings.TrimPrefix(o.Name, placement.Name+"-decision-"))
		owner := metav1.GetControllerOf(o)
		if err != nil || number < 1 || !o.DeletionTimestamp.IsZero() || sliceName(placement, number) != o.Name ||
			(owner != nil && owner.UID != placement.UID) {
			number = 0
		}
		slice := &Slice{number: number, Have: o}
		slice.group, slice.part = identity(o)
		all = append(all, slice)
	}
	slices.SortFunc(all, func(a, b *Slice) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.Have.Name, b.Have.Name))
	})
	return all
}

// render returns the desired object of a slice (docs/reference/hub.md, "Placement decisions").
func (p *planner) render(slice *Slice) *clusterv1beta1.PlacementDecision {
	want := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Name: sliceName(p.placement, slice.number), Namespace: p.placement.Namespace,
	}}
	if slice.Have != nil {
		want = slice.Have.DeepCopy()
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

// Narrow returns the layout that is there, with its decision groups, without the clusters that leave. All that stays is
// where it was, on a PlacementDecision without any cluster, too.
func Narrow(
	have []*clusterv1beta1.PlacementDecision, groups []clusterv1beta1.DecisionGroupStatus,
	leaves func(cluster string) bool,
) Layout {
	l := Layout{Groups: slices.Clone(groups)}
	count := map[string]int{}
	gone := func(d clusterv1beta1.ClusterDecision) bool { return leaves(d.ClusterName) }
	for _, page := range have {
		want := page
		if slices.ContainsFunc(page.Status.Decisions, gone) {
			want = page.DeepCopy()
			want.Status.Decisions = slices.DeleteFunc(want.Status.Decisions, gone)
		}
		count[page.Name] = len(want.Status.Decisions)
		l.Slices = append(l.Slices, Slice{Have: page, Want: want, list: want.Status.Decisions})
	}
	for i, group := range l.Groups {
		l.Groups[i].ClustersCount = 0
		for _, page := range group.Decisions {
			l.Groups[i].ClustersCount += reconcile.Int32(count[page])
		}
	}
	return l
}
