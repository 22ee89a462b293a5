package placement

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// interest is what a Placement looks at in clusters: a change of a cluster that alters no verdict of it cannot alter a
// decision of the Placement, taints aside.
type interest struct {
	// misconfigured is what is wrong with the Placement or a set; then no cluster counts.
	misconfigured error
	rules         *rules
	scope         scope
	// bindings are the names of the sets that bindings in the namespace refer to, whether the sets exist or not.
	bindings []string
}

// interestOf returns the interest of a Placement.
func interestOf(f facts) interest {
	in := interest{misconfigured: f.rules.misconfigured, rules: f.rules}
	for _, binding := range f.bindings {
		in.bindings = append(in.bindings, binding.Spec.ClusterSet)
	}
	if in.misconfigured == nil {
		in.scope, in.misconfigured = scopeOf(f)
	}
	return in
}

// refersTo reports whether a binding in the namespace refers to a set.
func (in interest) refersTo(set string) bool { return slices.Contains(in.bindings, set) }

// verdict is what the selectors of a Placement say about a cluster. Verdicts can be compared.
type verdict struct {
	// inSets reports whether the cluster is in a bound set; unbound reports whether it is not, and stays selected
	// nevertheless (docs/adr/0029-set-bindings.md).
	inSets, unbound bool
	// matches reports whether a predicate matches; group is then the index of its decision group, the number of groups
	// for the rest.
	matches bool
	group   int
	// failure is why an expression has no result for the cluster, which therefore does not match.
	failure string
}

// judge returns the verdict about a cluster; nil stands for a cluster that does not exist. It subtracts the cost of
// expressions from the budget. The error is about an expression that costs too much.
func (in interest) judge(cluster *clusterv1.ManagedCluster, budget *uint64) (verdict, error) {
	if cluster == nil || !cluster.DeletionTimestamp.IsZero() || in.misconfigured != nil {
		return verdict{}, nil
	}
	v := verdict{inSets: in.scope.has(cluster)}
	if v.unbound = !v.inSets && in.scope.earlier[cluster.Name]; !v.inSets && !v.unbound {
		return v, nil
	}
	s := subject{cluster: cluster}
	var failed error
	v.matches = len(in.rules.predicates) == 0
	for _, p := range in.rules.predicates {
		matches, err := p.matches(&s, budget)
		if tooExpensive := (*costError)(nil); errors.As(err, &tooExpensive) {
			return verdict{}, err
		}
		if v.matches = matches; matches {
			break
		}
		if failed == nil {
			failed = err
		}
	}
	switch {
	case v.matches:
		v.group = in.groupOf(&s)
	case failed != nil:
		v.failure = failed.Error()
	}
	return v, nil
}

// groupOf returns the index of the first decision group that selects a cluster, or the number of groups.
func (in interest) groupOf(s *subject) int {
	for i, g := range in.rules.groups {
		if slices.ContainsFunc(g.selectors, func(one selector) bool { return one.matchesKeys(s) }) {
			return i
		}
	}
	return len(in.rules.groups)
}

// subject is a cluster that selectors look at, with what is derived from it on demand.
type subject struct {
	cluster *clusterv1.ManagedCluster
	claims  labels.Set
	object  map[string]any
}

// claimSet returns the claims of the cluster by name.
func (s *subject) claimSet() labels.Set {
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
func (s selector) matches(of *subject, budget *uint64) (bool, error) {
	if !s.matchesKeys(of) {
		return false, nil
	}
	for _, e := range s.expressions {
		if matches, err := e.matches(of, budget); !matches || err != nil {
			return false, err
		}
	}
	return true, nil
}
