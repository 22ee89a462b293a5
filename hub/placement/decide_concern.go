package placement

import (
	"maps"
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// change is how two states of a cluster differ, as far as Placements can see.
type change struct {
	// whole reports whether the cluster came, went, or began to go, was accepted or denied, or can be decoded again or no
	// more.
	whole bool
	// taints reports whether the taints differ.
	taints bool
	// labels and claims are the keys of those that differ.
	labels, claims []string
}

// changeOf compares two states of a cluster; nil stands for a cluster that does not exist.
func changeOf(older, newer *clusterv1.ManagedCluster) change {
	if older == nil || newer == nil || older.DeletionTimestamp.IsZero() != newer.DeletionTimestamp.IsZero() ||
		older.Spec.HubAcceptsClient != newer.Spec.HubAcceptsClient || isUnknown(older) != isUnknown(newer) {
		return change{whole: true}
	}
	c := change{
		taints: !equality.Semantic.DeepEqual(older.Spec.Taints, newer.Spec.Taints),
		labels: changedKeys(older.Labels, newer.Labels),
	}
	if !slices.Equal(older.Status.ClusterClaims, newer.Status.ClusterClaims) {
		was, is := view{cluster: older}, view{cluster: newer}
		c.claims = changedKeys(was.claimSet(), is.claimSet())
	}
	return c
}

// changedKeys returns the keys under which two maps differ.
func changedKeys(older, newer map[string]string) []string {
	if maps.Equal(older, newer) {
		return nil
	}
	var keys []string
	for key, value := range older {
		if other, ok := newer[key]; !ok || other != value {
			keys = append(keys, key)
		}
	}
	for key := range newer {
		if _, ok := older[key]; !ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// mayPay is how much expressions cost at most for a cluster that pays for no excess: an equal share of ten thousand.
const mayPay = maxFleetCost / 10_000

// concerns reports whether a change of a cluster may alter the decisions of a Placement, and whether it touches what is
// decided about the cluster itself: its agent may have other clusters pay, or expressions fail in other words.
func (in interest) concerns(older, newer *view, c change) (concerned, touched bool) {
	if in.misconfigured != nil || in.frozen {
		left := newer.cluster != nil && !in.scope.allows(newer.cluster)
		leaves := left && (older.cluster == nil || in.scope.allows(older.cluster))
		return leaves, leaves
	}
	plain := c.whole || c.taints ||
		slices.ContainsFunc(c.labels, func(key string) bool { return in.scope.labels[key] || in.rules.labels[key] })
	if isUnknown(older.cluster) || isUnknown(newer.cluster) { // Verdicts say nothing then, only metadata do.
		covered := plain && (in.scope.covers(older.cluster) || in.scope.covers(newer.cluster))
		return covered, covered
	}
	if !plain && !in.rules.expressions &&
		!slices.ContainsFunc(c.claims, func(key string) bool { return in.rules.claims[key] }) {
		return false, false
	}
	was, is := in.judgeView(older), in.judgeView(newer)
	if was.unasked || is.unasked {
		return true, true
	}
	// A cluster for which expressions cost much more or less than before may be one that pays for an excess, or no more.
	differs, costs := bits.Len64(was.cost) != bits.Len64(is.cost), is.cost > mayPay
	was.cost, is.cost = 0, 0
	// Taints count for what stays selected because it cannot be judged, too. A cluster pays for the excess of others.
	concerned = differs || was != is || (c.taints && (is.matches || costs))
	return concerned, concerned && (c.whole || c.taints || was.decision() != is.decision())
}

// decidesAlike reports whether a Placement decides the same about two copies of a cluster that exists, as far as that
// does not depend on other clusters. Why an expression has no result for it changes nothing.
func (in interest) decidesAlike(a, b *clusterv1.ManagedCluster) bool {
	if c := changeOf(a, b); c.whole || c.taints || isUnknown(a) {
		return false
	}
	if in.misconfigured != nil || in.frozen {
		return in.scope.allows(a) == in.scope.allows(b)
	}
	return in.judge(a).decision() == in.judge(b).decision()
}

// decision returns what of a verdict counts for the cluster: neither what it costs nor why an expression has no result.
func (v verdict) decision() verdict {
	v.cost, v.failure = 0, ""
	return v
}
