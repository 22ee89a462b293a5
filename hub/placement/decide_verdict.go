package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// interestOf returns the interest of a Placement.
func interestOf(f facts) interest {
	in := interest{
		misconfigured: cmp.Or(checkName(f.placement.Name), f.rules.misconfigured), rules: f.rules, frozen: f.frozen,
	}
	for _, binding := range f.bindings {
		in.bindings = append(in.bindings, binding.Spec.ClusterSet)
	}
	var err error
	in.scope, err = scopeOf(f)
	in.misconfigured = cmp.Or(in.misconfigured, err)
	return in
}

// checkName reports whether PlacementDecisions can have the name of a Placement as their label.
func checkName(name string) error {
	if n := len(name); n > validation.LabelValueMaxLength {
		return fmt.Errorf("metadata.name has %d characters, and PlacementDecisions have it as a label of at most %d; "+
			"create a Placement with a shorter name", n, validation.LabelValueMaxLength)
	}
	return nil
}

// refersTo reports whether a binding in the namespace refers to a set.
func (in interest) refersTo(set string) bool { return slices.Contains(in.bindings, set) }

// judge returns the verdict about a cluster; nil stands for a cluster that does not exist. One that the hub does not
// accept is not selected either, or it would take the place of another.
func (in interest) judge(cluster *clusterv1.ManagedCluster) verdict {
	return in.judgeView(&view{cluster: cluster})
}

// judgeView is judge for a cluster that other Placements look at, too.
func (in interest) judgeView(of *view) verdict {
	cluster := of.cluster
	if cluster == nil || !cluster.DeletionTimestamp.IsZero() || !cluster.Spec.HubAcceptsClient ||
		in.misconfigured != nil {
		return verdict{}
	}
	v := verdict{inSets: in.scope.has(cluster)}
	v.unbound = !v.inSets && in.scope.earlier[cluster.Name]
	if v.inSets || v.unbound {
		v.outcome = in.rules.known.outcomeOf(of, in.rules)
	}
	return v
}

// keeps reports whether a selected cluster stays selected of which only the metadata is known, because it cannot be
// decoded: taints and claims say nothing then.
func (in interest) keeps(cluster *clusterv1.ManagedCluster) bool {
	return cluster.DeletionTimestamp.IsZero() && in.misconfigured == nil && in.scope.covers(cluster)
}

// look compares a cluster with predicates and decision groups.
func (r *rules) look(of *view) outcome {
	s := subject{view: of}
	o := outcome{matches: len(r.predicates) == 0}
	for _, p := range r.predicates {
		matches, err := p.matches(&s)
		o.cost = s.cost
		if tooExpensive := (*costError)(nil); errors.As(err, &tooExpensive) {
			return outcome{expensive: err.Error(), cost: s.cost, unasked: s.unasked}
		}
		if o.matches = matches; matches {
			break
		}
		if err != nil && o.failure == "" {
			o.failure = err.Error()
		}
	}
	if o.unasked = s.unasked; o.matches {
		o.group, o.failure = r.groupOf(&s), ""
	}
	return o
}

// groupOf returns the index of the first decision group that selects a cluster, or the number of groups.
func (r *rules) groupOf(s *subject) int {
	for i, g := range r.groups {
		if slices.ContainsFunc(g.selectors, func(one selector) bool { return one.matchesKeys(s) }) {
			return i
		}
	}
	return len(r.groups)
}

// claimSet returns the claims of the cluster by name.
func (s *view) claimSet() labels.Set {
	if s.claims == nil {
		s.claims = make(labels.Set, len(s.cluster.Status.ClusterClaims))
		for _, claim := range s.cluster.Status.ClusterClaims {
			s.claims[claim.Name] = claim.Value
		}
	}
	return s.claims
}

// matchesKeys reports whether the selectors of labels and claims match.
func (s selector) matchesKeys(of *subject) bool {
	return s.labels.Matches(labels.Set(of.cluster.Labels)) && (s.claims.Empty() || s.claims.Matches(of.claimSet()))
}

// matches reports whether all parts of the selector match. The error is about an expression without a result.
func (s selector) matches(of *subject) (bool, error) {
	if !s.matchesKeys(of) {
		return false, nil
	}
	for _, e := range s.expressions {
		if matches, err := e.matches(of); !matches || err != nil {
			return false, err
		}
	}
	return true, nil
}
