package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// selectClusters selects the clusters of a Placement; current are those that are selected already, of which the unread
// ones stay. The error is about an expression that costs too much for every cluster, or for all together.
func selectClusters(f facts, in interest, current map[string]bool) (selection, error) {
	spec := f.placement.Spec
	p := picking{
		selection: selection{groups: map[string]int{}, unknown: map[string]bool{}}, interest: in,
		tolerations: spec.Tolerations, current: current, now: f.now, unbound: map[string]bool{},
	}
	var known []*clusterv1.ManagedCluster
	for _, cluster := range f.clusters {
		if isUnknown(cluster) || f.unread[cluster.Name] {
			p.keep(cluster, f.unread[cluster.Name])
			continue
		}
		known = append(known, cluster)
	}
	in.rules = in.rules.held()
	verdicts, err := judgeAll(in.judge, known)
	if err != nil {
		return selection{}, err
	}
	for i, cluster := range known {
		p.look(cluster, verdicts[i])
	}
	if len(p.expensive) > 0 && len(p.expensive) == p.asked {
		return selection{}, fmt.Errorf("%s; that is so for every ManagedCluster", p.expensive[0].cause)
	}
	s := p.selection
	s.failures = append(s.failures, p.expensive...)
	slices.Sort(p.kept)
	slices.Sort(p.fresh)
	slices.SortFunc(s.failures, func(a, b failure) int { return cmp.Compare(a.cluster, b.cluster) })
	s.take(slices.Concat(p.kept, p.fresh), spec.NumberOfClusters)
	for _, name := range s.names {
		if p.unbound[name] {
			s.unbound = append(s.unbound, name)
		}
	}
	return s, nil
}

// picking is a selection while clusters are looked at.
type picking struct {
	selection
	interest
	tolerations []clusterv1beta1.Toleration
	current     map[string]bool
	now         time.Time
	// kept are eligible and selected already, fresh are eligible, unbound are in no bound set.
	kept, fresh []string
	unbound     map[string]bool
	// asked is how many clusters the predicates were asked about.
	asked int
	// expensive are the clusters for which expressions cost too much.
	expensive []failure
}

// look takes a cluster into account.
func (p *picking) look(cluster *clusterv1.ManagedCluster, v verdict) {
	if v.inSets || v.unbound {
		p.asked++
	}
	if v.expensive != "" {
		// The agent of a cluster writes its claims, so one cluster must not stop the others.
		p.expensive = append(p.expensive, failure{cluster.Name, v.expensive})
		p.keep(cluster, false)
		return
	}
	if v.inSets {
		p.inSets++
	}
	if v.failure != "" {
		p.failures = append(p.failures, failure{cluster.Name, v.failure})
	}
	if !v.matches {
		return
	}
	p.matching++
	tolerated, until := tolerates(p.tolerations, cluster.Spec.Taints, p.current[cluster.Name], p.now)
	if !tolerated {
		return
	}
	p.eligible++
	p.wake = reconcile.Earliest(p.wake, until)
	p.groups[cluster.Name], p.unbound[cluster.Name] = v.group, v.unbound
	if p.current[cluster.Name] {
		p.kept = append(p.kept, cluster.Name)
	} else {
		p.fresh = append(p.fresh, cluster.Name)
	}
}

// keep keeps a selected cluster that the predicates cannot be asked about. Of one that is not selected it is unknown
// whether it should be.
func (p *picking) keep(cluster *clusterv1.ManagedCluster, unread bool) {
	// Taints are for the user who administers the hub. An agent whose claims are too expensive must not keep its place by
	// them.
	tolerated, until := tolerates(p.tolerations, cluster.Spec.Taints, p.current[cluster.Name], p.now)
	if stays := unread || (p.keeps(cluster) && tolerated); !stays {
		return
	}
	p.wake = reconcile.Earliest(p.wake, until)
	if !p.current[cluster.Name] {
		p.unknown[cluster.Name] = true
		return
	}
	p.inSets, p.matching, p.eligible = p.inSets+1, p.matching+1, p.eligible+1
	p.groups[cluster.Name] = p.rules.groupOf(&subject{view: &view{cluster: cluster}})
	p.kept = append(p.kept, cluster.Name)
	p.unbound[cluster.Name] = !p.scope.has(cluster) && p.scope.earlier[cluster.Name]
}

// take selects the first clusters of a list, as many as there may be; nil is all.
func (s *selection) take(eligible []string, number *int32) {
	n := len(eligible)
	if number != nil {
		n = min(n, max(int(*number), 0))
	}
	for _, name := range eligible[n:] {
		delete(s.groups, name)
	}
	s.names = eligible[:n]
	if number != nil && n >= int(*number) {
		s.unknown = nil // none of them has a place, whatever is found out about it
	}
	slices.Sort(s.names)
}

// checkToleration returns what is wrong with a toleration.
func checkToleration(t clusterv1beta1.Toleration) error {
	switch t.Operator {
	case clusterv1beta1.TolerationOpExists:
		if t.Value != "" {
			return fmt.Errorf("value must be empty when operator is %s", t.Operator)
		}
	case clusterv1beta1.TolerationOpEqual, "":
		if t.Key == "" {
			return fmt.Errorf("key may only be empty when operator is %s", clusterv1beta1.TolerationOpExists)
		}
	default:
		return fmt.Errorf("operator %q is neither %s nor %s", t.Operator, clusterv1beta1.TolerationOpEqual,
			clusterv1beta1.TolerationOpExists)
	}
	if t.TolerationSeconds != nil && *t.TolerationSeconds < 0 {
		return errors.New("tolerationSeconds must not be negative")
	}
	return nil
}

// tolerates reports whether all taints of a cluster are tolerated, and the instant at which that ends; zero when it
// does not end. A taint NoSelectIfNew affects only clusters that are not selected yet.
func tolerates(
	tolerations []clusterv1beta1.Toleration, taints []clusterv1.Taint, selected bool, now time.Time,
) (bool, time.Time) {
	var ends time.Time
	for _, taint := range taints {
		switch {
		case taint.Effect == clusterv1.TaintEffectPreferNoSelect:
			continue
		case taint.Effect == clusterv1.TaintEffectNoSelectIfNew && selected:
			continue
		}
		added := taint.TimeAdded.Time
		if added.IsZero() {
			added = now // The hub manager is about to write the time.
		}
		tolerated, end, until := fleet.Tolerated(tolerations, taint, added)
		if !tolerated || (end && !now.Before(until)) {
			return false, time.Time{}
		}
		ends = reconcile.Earliest(ends, until)
	}
	return true, ends
}

// unsupported returns an error that names the first field that this controller does not support; nil when it supports
// all that are used.
func unsupported(spec clusterv1beta1.PlacementSpec) error {
	for _, f := range []struct {
		path string
		used bool
	}{
		{"spec.prioritizerPolicy.configurations", len(spec.PrioritizerPolicy.Configurations) > 0},
		{"spec.prioritizerPolicy.mode", !oneOf(spec.PrioritizerPolicy.Mode, clusterv1beta1.PrioritizerPolicyModeAdditive)},
		{"spec.spreadPolicy.spreadConstraints", len(spec.SpreadPolicy.SpreadConstraints) > 0},
		{"spec.sortBy", !oneOf(spec.SortBy, clusterv1beta1.PlacementSortByClusterName)},
	} {
		if f.used {
			return refuse(f.path)
		}
	}
	return nil
}

func refuse(path string) error {
	return fmt.Errorf("%s is not supported by the placement controller of this hub: remove the field, or start the hub "+
		"manager with --placement=false and run a placement controller that supports it", path)
}

// oneOf reports whether a field is unset or has the only supported value.
func oneOf[T ~string](have, supported T) bool { return have == "" || have == supported }
