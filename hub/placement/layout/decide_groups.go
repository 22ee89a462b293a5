package layout

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// Request holds what a layout follows from.
type Request struct {
	Placement *clusterv1beta1.Placement
	// Groups are the names of the decision groups of the spec, in their order and each once.
	Groups []string
	// Size is the limit of clusters in a decision group.
	Size Size
	// Selected are the selected clusters with the index of their group in Groups; the number of groups for the rest.
	Selected map[string]int
	// Have are the PlacementDecisions of the Placement, which are not changed; Taken are the names of others in its
	// namespace.
	Have  []*clusterv1beta1.PlacementDecision
	Taken []string
}

// Layout is the distribution of the selected clusters to decision groups and PlacementDecisions.
type Layout struct {
	// Slices are all PlacementDecisions in the order in which they are written, including unchanged ones.
	Slices []Slice
	// Groups are the decision groups as the status of the Placement has them.
	Groups []clusterv1beta1.DecisionGroupStatus
}

// Wanted returns the PlacementDecisions that are there when all slices are written.
func (l Layout) Wanted() []*clusterv1beta1.PlacementDecision {
	var all []*clusterv1beta1.PlacementDecision
	for _, slice := range l.Slices {
		if slice.Want != nil {
			all = append(all, slice.Want)
		}
	}
	return all
}

// bucket is all decision groups of one name in the spec, or the rest. Each part of it is one decision group of its own,
// because a decision group has a limit of clusters.
type bucket struct {
	name  string
	parts []*part
	// total is the number of its clusters; most is the number of parts beyond which existing ones are merged, zero for no
	// limit.
	total, most int
	// homeless are slices whose clusters do not fit into their part, and slices whose part is none of this bucket.
	homeless []*Slice
}

// part is one decision group: clusters of one bucket, on one slice or more.
type part struct {
	// number identifies the part within its bucket as long as it exists. Parts are in the order of their numbers.
	number, count int
	slices        []*Slice
}

// planner distributes clusters.
type planner struct {
	placement *clusterv1beta1.Placement
	size      Size
	// limit is the size in clusters.
	limit   int
	buckets []*bucket
	slices  []*Slice
	// open are the selected clusters that have no place yet, with the index of their bucket.
	open map[string]int
	// used are the names of existing slices, of any writer; next is the first number that no new slice has tried.
	used map[string]bool
	next int
}

// Plan distributes the selected clusters. A cluster stays in its PlacementDecision and its decision group as long as it
// belongs to the group and the group is not larger than the limit. New clusters fill the existing groups of their
// bucket, then new ones. When the limit in the spec changes, surplus groups are merged into others. A slice whose
// clusters all change the group keeps them and changes its labels.
func Plan(r Request) Layout {
	p := &planner{
		placement: r.Placement, size: r.Size, limit: r.Size.Of(len(r.Selected)),
		open: maps.Clone(r.Selected), used: map[string]bool{}, next: 1,
	}
	for _, name := range r.Groups {
		p.buckets = append(p.buckets, &bucket{name: name})
	}
	p.buckets = append(p.buckets, &bucket{})
	for _, at := range r.Selected {
		p.buckets[at].total++
	}
	for _, name := range r.Taken {
		p.used[name] = true
	}
	p.adopt(r.Have)
	p.keep()
	p.house()
	for _, slice := range p.slices {
		slice.loses = slices.ContainsFunc(slice.decisions(), func(d clusterv1beta1.ClusterDecision) bool {
			_, open := p.open[d.ClusterName]
			return open
		})
	}
	p.fill()
	return p.finish()
}

// adopt takes the existing slices. A bucket whose slices were made for another size is not to have more parts than it
// needs.
func (p *planner) adopt(have []*clusterv1beta1.PlacementDecision) {
	p.slices = numbered(p.placement, have)
	for _, slice := range p.slices {
		p.used[slice.Have.Name] = true
		if i := p.bucketOf(slice); i >= 0 {
			b, made := p.buckets[i], slice.Have.Annotations[names.AnnotationDecisionGroupSize]
			if made != "" && made != p.size.String() {
				b.most = max((b.total+p.limit-1)/p.limit, 1)
			}
		}
	}
}

// bucketOf returns the index of the bucket that a slice belongs to; -1 when its group is none of the spec.
func (p *planner) bucketOf(slice *Slice) int {
	return slices.IndexFunc(p.buckets, func(b *bucket) bool { return b.name == slice.group })
}

// keep leaves clusters where they are.
func (p *planner) keep() {
	ordered := slices.Clone(p.slices)
	slices.SortStableFunc(ordered, func(a, b *Slice) int { return cmp.Compare(a.part, b.part) })
	for _, slice := range ordered {
		i := p.bucketOf(slice)
		switch {
		case slice.number == 0:
		case i >= 0:
			p.keepIn(i, slice)
		default:
			// The group was renamed or removed: the slice goes where its first cluster belongs.
			for _, d := range slice.decisions() {
				if at, open := p.open[d.ClusterName]; open {
					p.buckets[at].homeless = append(p.buckets[at].homeless, slice)
					break
				}
			}
		}
	}
}

// keepIn leaves the clusters of a slice in its part, as many as fit.
func (p *planner) keepIn(at int, slice *Slice) {
	b := p.buckets[at]
	members := p.members(at, slice)
	in := b.part(slice.part)
	if in == nil && (b.most == 0 || len(b.parts) < b.most) {
		in = &part{number: slice.part}
		b.parts = append(b.parts, in)
	}
	if in == nil || (len(members) > 0 && in.count >= p.limit) {
		b.homeless = append(b.homeless, slice)
		return
	}
	p.settle(in, slice, members)
}

// house finds parts for the slices that have none, with all their clusters where that is possible.
func (p *planner) house() {
	for at, b := range p.buckets {
		for _, slice := range b.homeless {
			members := p.members(at, slice)
			if len(members) == 0 {
				continue
			}
			i := slices.IndexFunc(b.parts, func(in *part) bool { return in.count+len(members) <= p.limit })
			switch {
			case i >= 0:
				p.settle(b.parts[i], slice, members)
			case b.most == 0 || len(b.parts) < b.most:
				p.settle(b.add(p.slices), slice, members)
			}
		}
	}
}

// members returns the decisions of a slice whose clusters belong to a bucket and have no place yet, by name.
func (p *planner) members(at int, slice *Slice) []clusterv1beta1.ClusterDecision {
	var all []clusterv1beta1.ClusterDecision
	for _, d := range slice.decisions() {
		if belongs, open := p.open[d.ClusterName]; open && belongs == at {
			all = append(all, d)
		}
	}
	byName := func(a, b clusterv1beta1.ClusterDecision) int { return cmp.Compare(a.ClusterName, b.ClusterName) }
	slices.SortFunc(all, byName)
	return slices.CompactFunc(all, func(a, b clusterv1beta1.ClusterDecision) bool { return byName(a, b) == 0 })
}

// settle puts a slice with its members into a part, as many as fit.
func (p *planner) settle(in *part, slice *Slice, members []clusterv1beta1.ClusterDecision) {
	n := min(len(members), sliceSize, p.limit-in.count)
	slice.list = slices.Clone(members[:n])
	for _, d := range slice.list {
		delete(p.open, d.ClusterName)
	}
	in.count += n
	in.slices = append(in.slices, slice)
}

// fill puts the clusters that have no place into parts with room, then into new ones.
func (p *planner) fill() {
	rests := make([][]string, len(p.buckets))
	for name, at := range p.open {
		rests[at] = append(rests[at], name)
	}
	for at, b := range p.buckets {
		rest := rests[at]
		slices.Sort(rest)
		for i := 0; len(rest) > 0; i++ {
			if i == len(b.parts) {
				b.add(p.slices)
			}
			n := min(len(rest), max(p.limit-b.parts[i].count, 0))
			p.grow(b.parts[i], rest[:n])
			rest = rest[n:]
		}
	}
}

// grow adds clusters to a part: to its slices with room, then to new ones. A slice that loses a cluster to another
// slice gains none, because it is written after those that gain.
func (p *planner) grow(in *part, clusters []string) {
	in.count += len(clusters)
	for i := 0; len(clusters) > 0; i++ {
		if i == len(in.slices) {
			in.slices = append(in.slices, p.newSlice())
		}
		slice := in.slices[i]
		if slice.loses {
			continue
		}
		n := min(len(clusters), sliceSize-len(slice.list))
		slice.Gains = slice.Gains || n > 0
		slice.list = append(slice.list, decisions(clusters[:n])...)
		clusters = clusters[n:]
	}
}

// part returns the part with a number; nil when there is none.
func (b *bucket) part(number int) *part {
	i := slices.IndexFunc(b.parts, func(in *part) bool { return in.number == number })
	if i < 0 {
		return nil
	}
	return b.parts[i]
}

// add adds a part at the end, with a number that no slice of the bucket has.
func (b *bucket) add(all []*Slice) *part {
	next := 0
	for _, in := range b.parts {
		next = max(next, in.number+1)
	}
	for _, slice := range all {
		if slice.group == b.name && slice.Have != nil {
			next = max(next, slice.part+1)
		}
	}
	added := &part{number: next}
	b.parts = append(b.parts, added)
	return added
}

// identity returns the decision group and the part that a slice belongs to. A slice of another writer has the index of
// its group for a part.
func identity(o *clusterv1beta1.PlacementDecision) (group string, number int) {
	name, text, found := strings.Cut(o.Annotations[names.AnnotationDecisionGroup], "/")
	number, err := strconv.Atoi(text)
	if found && err == nil && number >= 0 {
		return name, number
	}
	return o.Labels[names.LabelDecisionGroupName], max(observedIndex(o), 0)
}
