package webhook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// defaultSet is the cluster set of clusters that are in no other.
const defaultSet = "default"

// completion is what is filled into a ManagedCluster.
type completion struct {
	// set is the cluster set that it joins; empty when it is in one.
	set string
	// stamps are the times at which taints were added, by their place in spec.taints.
	stamps map[int]time.Time
	// wrong is what the author must not write.
	wrong []string
}

// complete decides what is filled into a ManagedCluster; before is nil when it is created.
func complete(before, after *clusterv1.ManagedCluster, now time.Time) completion {
	c := completion{stamps: map[int]time.Time{}}
	if after.Labels[clusterv1beta2.ClusterSetLabel] == "" {
		c.set = defaultSet
	}
	var refused []string
	for i := range after.Spec.Taints {
		stamp, ok := stampOf(before, &after.Spec.Taints[i], now)
		switch {
		case !ok:
			refused = append(refused, fmt.Sprintf("%q", after.Spec.Taints[i].Key))
		case !after.Spec.Taints[i].TimeAdded.Time.Equal(stamp):
			c.stamps[i] = stamp
		}
	}
	if len(refused) > 0 {
		c.wrong = append(c.wrong, fmt.Sprintf("timeAdded of taint %s is set by the hub; leave it out, or as it is",
			strings.Join(refused, ", ")))
	}
	return c
}

// stampOf returns the time at which a taint was added. False means that the author has stated another one. When a
// cluster is created that is overlooked: whoever restores a backup cannot know better.
func stampOf(before *clusterv1.ManagedCluster, taint *clusterv1.Taint, now time.Time) (time.Time, bool) {
	now = now.UTC().Truncate(time.Second)
	if before == nil {
		return now, true
	}
	was := earlier(before.Spec.Taints, taint)
	switch stated := taint.TimeAdded.Time; {
	case was == nil:
		return now, stated.IsZero()
	case was.Value != taint.Value || was.Effect != taint.Effect:
		return now, stated.IsZero() || stated.Equal(was.TimeAdded.Time)
	case was.TimeAdded.IsZero():
		return now, stated.IsZero()
	default:
		return was.TimeAdded.Time, stated.IsZero() || stated.Equal(was.TimeAdded.Time)
	}
}

// earlier finds what a taint was before: the one with its key and effect, or else the one with its key; nil when it is
// new.
func earlier(taints []clusterv1.Taint, taint *clusterv1.Taint) *clusterv1.Taint {
	at := slices.IndexFunc(taints, func(t clusterv1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect })
	if at < 0 {
		at = slices.IndexFunc(taints, func(t clusterv1.Taint) bool { return t.Key == taint.Key })
	}
	if at < 0 {
		return nil
	}
	return &taints[at]
}
