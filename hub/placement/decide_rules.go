package placement

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/placement/layout"
	"github.com/spokelet/spokelet/internal/message"
)

// parse turns the spec of a Placement into rules.
func parse(spec clusterv1beta1.PlacementSpec, compile compiler) *rules {
	r := &rules{known: &outcomes{}}
	if err := unsupported(spec); err != nil {
		return &rules{misconfigured: err}
	}
	for _, part := range []func(clusterv1beta1.PlacementSpec, compiler) error{
		countLabels, r.parsePredicates, r.parseGroups, checkTolerations,
	} {
		if err := part(spec, compile); err != nil {
			return &rules{misconfigured: err}
		}
	}
	r.collectKeys()
	return r
}

// maxLabels is how many labels and values the selectors of a Placement may have. Each is compared with each cluster.
const maxLabels = 4096

// countLabels reports whether a Placement has more labels and values than it may have.
func countLabels(spec clusterv1beta1.PlacementSpec, _ compiler) error {
	left := maxLabels
	eachSelector(&spec, func(s *metav1.LabelSelector) {
		left -= len(s.MatchLabels)
		for _, e := range s.MatchExpressions {
			left -= max(1, len(e.Values))
		}
	})
	if left < 0 {
		return fmt.Errorf("the selectors of spec have more than %d labels and values", maxLabels)
	}
	return nil
}

// eachSelector calls a function with each selector of a spec, which may change it.
func eachSelector(spec *clusterv1beta1.PlacementSpec, f func(*metav1.LabelSelector)) {
	of := func(byLabel *metav1.LabelSelector, byClaim *clusterv1beta1.ClusterClaimSelector) {
		f(byLabel)
		claims := metav1.LabelSelector{MatchExpressions: byClaim.MatchExpressions}
		f(&claims)
		byClaim.MatchExpressions = claims.MatchExpressions
	}
	for i := range spec.Predicates {
		s := &spec.Predicates[i].RequiredClusterSelector
		of(&s.LabelSelector, &s.ClaimSelector)
	}
	groups := spec.DecisionStrategy.GroupStrategy.DecisionGroups
	for i := range groups {
		s := &groups[i].ClusterSelector
		of(&s.LabelSelector, &s.ClaimSelector)
	}
}

// Bound returns a transformation of a cache that keeps of the selectors of a Placement little more than they may have,
// before the next one: a user who may write one can fill it with a hundred thousand labels, which take twenty times
// their bytes. What is left is still too much, so the Placement stays misconfigured.
func Bound(next func(any) (any, error)) func(any) (any, error) {
	return func(in any) (any, error) {
		if p, is := in.(*clusterv1beta1.Placement); is && countLabels(p.Spec, nil) != nil {
			left := maxLabels + 1
			eachSelector(&p.Spec, func(s *metav1.LabelSelector) { left = cut(s, left) })
		}
		return next(in)
	}
}

// cut leaves at most so many labels and values in a selector, and returns how many may follow.
func cut(s *metav1.LabelSelector, left int) int {
	labels := make(map[string]string, min(left, len(s.MatchLabels)))
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if left == 0 {
			break
		}
		labels[key] = s.MatchLabels[key]
		left--
	}
	s.MatchLabels = labels
	var kept []metav1.LabelSelectorRequirement
	for _, e := range s.MatchExpressions {
		if left == 0 {
			break
		}
		e.Values = slices.Clone(e.Values[:min(left, len(e.Values))])
		kept, left = append(kept, e), left-max(1, len(e.Values))
	}
	s.MatchExpressions = kept
	return left
}

func (r *rules) parsePredicates(spec clusterv1beta1.PlacementSpec, compile compiler) error {
	if n, size := expressionsOf(spec); n > maxExpressions || size > maxText {
		return fmt.Errorf("spec.predicates have %d CEL expressions of %d bytes; a Placement may have %d of %d bytes",
			n, size, maxExpressions, maxText)
	}
	for i, p := range spec.Predicates {
		path, from := fmt.Sprintf("spec.predicates[%d].requiredClusterSelector", i), p.RequiredClusterSelector
		s, err := parseSelector(path, &from.LabelSelector, from.ClaimSelector)
		if err != nil {
			return err
		}
		for j, text := range from.CelSelector.CelExpressions {
			e, err := compile(fmt.Sprintf("%s.celSelector.celExpressions[%d]", path, j), text)
			if err != nil {
				return err
			}
			s.expressions, r.expressions = append(s.expressions, e), true
		}
		r.predicates = append(r.predicates, s)
	}
	return nil
}

// expressionsOf returns how many CEL expressions a Placement has, and their length in bytes.
func expressionsOf(spec clusterv1beta1.PlacementSpec) (n, size int) {
	for _, p := range spec.Predicates {
		for _, text := range p.RequiredClusterSelector.CelSelector.CelExpressions {
			n, size = n+1, size+len(text)
		}
	}
	return n, size
}

func (r *rules) parseGroups(spec clusterv1beta1.PlacementSpec, _ compiler) error {
	const path = "spec.decisionStrategy.groupStrategy"
	strategy := spec.DecisionStrategy.GroupStrategy
	for i, from := range strategy.DecisionGroups {
		at := fmt.Sprintf("%s.decisionGroups[%d]", path, i)
		if from.GroupName == "" {
			return fmt.Errorf("%s.groupName is empty", at)
		}
		if wrong := validation.IsValidLabelValue(from.GroupName); len(wrong) > 0 {
			return fmt.Errorf("%s.groupName cannot be a label of PlacementDecisions: %s", at, wrong[0])
		}
		s, err := parseSelector(at+".groupClusterSelector", &from.ClusterSelector.LabelSelector,
			from.ClusterSelector.ClaimSelector)
		if err != nil {
			return err
		}
		same := slices.IndexFunc(r.groups, func(g group) bool { return g.name == from.GroupName })
		if same < 0 {
			same, r.groups = len(r.groups), append(r.groups, group{name: from.GroupName})
		}
		r.groups[same].selectors = append(r.groups[same].selectors, s)
	}
	size, err := layout.ParseSize(strategy.ClustersPerDecisionGroup)
	if err != nil {
		return fmt.Errorf("%s.clustersPerDecisionGroup %w", path, err)
	}
	r.size = size
	return nil
}

// parseSelector parses the selectors of labels and claims under a path of the spec.
func parseSelector(
	path string, byLabel *metav1.LabelSelector, byClaim clusterv1beta1.ClusterClaimSelector,
) (selector, error) {
	s := selector{}
	var err error
	if s.labels, err = metav1.LabelSelectorAsSelector(byLabel); err != nil {
		return selector{}, fmt.Errorf("%s.labelSelector: %s", path, message.Cut(err.Error(), message.MaxCause))
	}
	claims := &metav1.LabelSelector{MatchExpressions: byClaim.MatchExpressions}
	if s.claims, err = metav1.LabelSelectorAsSelector(claims); err != nil {
		return selector{}, fmt.Errorf("%s.claimSelector: %s", path, message.Cut(err.Error(), message.MaxCause))
	}
	return s, nil
}

func checkTolerations(spec clusterv1beta1.PlacementSpec, _ compiler) error {
	for i, t := range spec.Tolerations {
		if err := checkToleration(t); err != nil {
			return fmt.Errorf("spec.tolerations[%d]: %w", i, err)
		}
	}
	return nil
}

// groupNames returns the names of the decision groups in their order.
func (r *rules) groupNames() []string {
	all := make([]string, len(r.groups))
	for i, g := range r.groups {
		all[i] = g.name
	}
	return all
}

// collectKeys collects the keys of labels and claims that the selectors look at.
func (r *rules) collectKeys() {
	r.labels, r.claims = map[string]bool{}, map[string]bool{}
	all := slices.Clone(r.predicates)
	for _, g := range r.groups {
		all = append(all, g.selectors...)
	}
	for _, s := range all {
		maps.Copy(r.labels, keysOf(s.labels))
		maps.Copy(r.claims, keysOf(s.claims))
	}
}

// keysOf returns the keys that a selector looks at.
func keysOf(s labels.Selector) map[string]bool {
	keys := map[string]bool{}
	requirements, _ := s.Requirements()
	for _, requirement := range requirements {
		keys[requirement.Key()] = true
	}
	return keys
}
