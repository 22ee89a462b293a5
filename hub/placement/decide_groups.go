package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// groupSize is the limit of clusters in a decision group: a number, or else a percentage of all selected clusters.
type groupSize struct{ number, percent int }

// parseSize parses clustersPerDecisionGroup. An unset one is 100 %.
func parseSize(from intstr.IntOrString) (groupSize, error) {
	const all = 100
	text, isPercent := strings.CutSuffix(from.StrVal, "%")
	switch {
	case from == intstr.IntOrString{} || from == intstr.FromString(""):
		return groupSize{percent: all}, nil
	case from.Type == intstr.Int:
		text = strconv.Itoa(from.IntValue())
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return groupSize{}, fmt.Errorf("%q is neither a number nor a percentage", from.String())
	case n < 1:
		return groupSize{}, fmt.Errorf("%q must be at least 1", from.String())
	case isPercent && n > all:
		return groupSize{}, fmt.Errorf("%q must be at most 100%%", from.String())
	case isPercent:
		return groupSize{percent: n}, nil
	}
	return groupSize{number: n}, nil
}

// of returns the limit where total clusters are selected; it is at least 1.
func (s groupSize) of(total int) int {
	const all = 100
	if s.number > 0 {
		return s.number
	}
	return max((total*s.percent+all-1)/all, 1)
}

// String returns the size as a Placement has it.
func (s groupSize) String() string {
	if s.number > 0 {
		return strconv.Itoa(s.number)
	}
	return strconv.Itoa(s.percent) + "%"
}

// layout is the distribution of the selected clusters to decision groups and PlacementDecisions.
type layout struct {
	// slices are all PlacementDecisions in the order in which they are written, including unchanged ones.
	slices []decisionSlice
	// groups are the decision groups as the status of the Placement has them.
	groups []clusterv1beta1.DecisionGroupStatus
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
	homeless []*decisionSlice
}

// part is one decision group: clusters of one bucket, on one slice or more.
type part struct {
	// number identifies the part within its bucket as long as it exists. Parts are in the order of their numbers.
	number, count int
	slices        []*decisionSlice
}

// planner distributes clusters.
type planner struct {
	placement *clusterv1beta1.Placement
	size      groupSize
	// limit is the size in clusters.
	limit   int
	buckets []*bucket
	slices  []*decisionSlice
	// open are the selected clusters that have no place yet, with the index of their bucket.
	open map[string]int
	// used are the names of existing slices, of any writer; next is the first number that no new slice has tried.
	used map[string]bool
	next int
}

// planLayout distributes the selected clusters. A cluster stays in its PlacementDecision and its decision group as long
// as it belongs to the group and the group is not larger than the limit. New clusters fill the existing groups of their
// bucket, then new ones. When the limit in the spec changes, surplus groups are merged into others. A slice whose
// clusters all change the group keeps them and changes its labels.
func planLayout(
	placement *clusterv1beta1.Placement, r *rules, s selection, have []*clusterv1beta1.PlacementDecision,
	taken []string,
) layout {
	p := &planner{
		placement: placement, size: r.size, limit: r.size.of(len(s.names)),
		open: maps.Clone(s.groups), used: map[string]bool{}, next: 1,
	}
	for _, g := range r.groups {
		p.buckets = append(p.buckets, &bucket{name: g.name})
	}
	p.buckets = append(p.buckets, &bucket{})
	for _, at := range s.groups {
		p.buckets[at].total++
	}
	for _, name := range taken {
		p.used[name] = true
	}
	p.adopt(have)
	p.keep()
	p.house()
	for _, slice := range p.slices {
		slice.loses = slices.ContainsFunc(slice.decisions(), func(d clusterv1beta1.ClusterDecision) bool {
			_, open := p.open[d.ClusterName]
			return open
		})
	}
	p.fill(s.names)
	return p.finish()
}

// adopt takes the existing slices. A bucket whose slices were made for another size is not to have more parts than it
// needs.
func (p *planner) adopt(have []*clusterv1beta1.PlacementDecision) {
	p.slices = numbered(p.placement, have)
	for _, slice := range p.slices {
		p.used[slice.have.Name] = true
		if i := p.bucketOf(slice); i >= 0 {
			b, made := p.buckets[i], slice.have.Annotations[names.AnnotationDecisionGroupSize]
			if made != "" && made != p.size.String() {
				b.most = max((b.total+p.limit-1)/p.limit, 1)
			}
		}
	}
}

// bucketOf returns the index of the bucket that a slice belongs to; -1 when its group is none of the spec.
func (p *planner) bucketOf(slice *decisionSlice) int {
	return slices.IndexFunc(p.buckets, func(b *bucket) bool { return b.name == slice.group })
}

// keep leaves clusters where they are.
func (p *planner) keep() {
	ordered := slices.Clone(p.slices)
	slices.SortStableFunc(ordered, func(a, b *decisionSlice) int { return cmp.Compare(a.part, b.part) })
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
func (p *planner) keepIn(at int, slice *decisionSlice) {
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
func (p *planner) members(at int, slice *decisionSlice) []clusterv1beta1.ClusterDecision {
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
func (p *planner) settle(in *part, slice *decisionSlice, members []clusterv1beta1.ClusterDecision) {
	n := min(len(members), sliceSize, p.limit-in.count)
	slice.list = slices.Clone(members[:n])
	for _, d := range slice.list {
		delete(p.open, d.ClusterName)
	}
	in.count += n
	in.slices = append(in.slices, slice)
}

// fill puts the clusters that have no place into parts with room, then into new ones.
func (p *planner) fill(selected []string) {
	for at, b := range p.buckets {
		var rest []string
		for _, name := range selected {
			if belongs, open := p.open[name]; open && belongs == at {
				rest = append(rest, name)
			}
		}
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
		slice.gains = slice.gains || n > 0
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
func (b *bucket) add(all []*decisionSlice) *part {
	next := 0
	for _, in := range b.parts {
		next = max(next, in.number+1)
	}
	for _, slice := range all {
		if slice.group == b.name && slice.have != nil {
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
