package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Shows: registration/taints
func TestTaintsFollowTheHealthOfACluster(t *testing.T) {
	old, now := metav1.NewTime(noon().Add(-time.Hour)), metav1.NewTime(noon())
	noSelect := clusterv1.TaintEffectNoSelect
	const unavailable, unreachable = "cluster.open-cluster-management.io/unavailable",
		"cluster.open-cluster-management.io/unreachable"
	mine := clusterv1.Taint{Key: "example.com/mine", Value: "v", Effect: clusterv1.TaintEffectPreferNoSelect, TimeAdded: old}
	similar := clusterv1.Taint{Key: unreachable, Effect: clusterv1.TaintEffectNoSelectIfNew, TimeAdded: old}
	tests := map[string]struct {
		available metav1.ConditionStatus
		have      []clusterv1.Taint
		want      []clusterv1.Taint
	}{
		"a cluster whose health nobody knows cannot be reached": {
			have: []clusterv1.Taint{mine}, want: []clusterv1.Taint{mine, {Key: unreachable, Effect: noSelect, TimeAdded: now}},
		},
		"a silent cluster cannot be reached": {
			available: metav1.ConditionUnknown, want: []clusterv1.Taint{{Key: unreachable, Effect: noSelect, TimeAdded: now}},
		},
		"a taint that is there keeps its time": {
			available: metav1.ConditionUnknown, have: []clusterv1.Taint{{Key: unreachable, Effect: noSelect, TimeAdded: old}},
			want: []clusterv1.Taint{{Key: unreachable, Effect: noSelect, TimeAdded: old}},
		},
		"a cluster whose API server is down is unavailable": {
			available: metav1.ConditionFalse, have: []clusterv1.Taint{{Key: unreachable, Effect: noSelect, TimeAdded: old}, mine},
			want: []clusterv1.Taint{mine, {Key: unavailable, Effect: noSelect, TimeAdded: now}},
		},
		"a cluster that falls silent while it is unavailable": {
			available: metav1.ConditionUnknown, have: []clusterv1.Taint{{Key: unavailable, Effect: noSelect, TimeAdded: old}},
			want: []clusterv1.Taint{{Key: unreachable, Effect: noSelect, TimeAdded: now}},
		},
		"a healthy cluster has neither, but keeps those of others": {
			available: metav1.ConditionTrue,
			have: []clusterv1.Taint{
				{Key: unreachable, Effect: noSelect, TimeAdded: old}, mine, similar,
				{Key: unavailable, Effect: noSelect, TimeAdded: old},
			},
			want: []clusterv1.Taint{mine, similar},
		},
		"a healthy cluster without taints needs nothing": {available: metav1.ConditionTrue},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			cluster := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{Taints: tc.have}}
			if tc.available != "" {
				cluster.Status.Conditions = []metav1.Condition{
					condition(clusterv1.ManagedClusterConditionAvailable, tc.available, "x", noon()),
				}
			}
			before := cluster.DeepCopy()
			changed := taint(cluster, noon())
			assert.Equal(t, tc.want, cluster.Spec.Taints)
			assert.Equal(t, !assert.ObjectsAreEqual(before, cluster), changed)
			assert.False(t, taint(cluster, noon().Add(time.Hour)), "the second time nothing changes")
		})
	}
}

func TestEveryClusterThatIsNotLeavingIsTainted(t *testing.T) {
	tests := map[string]struct {
		change func(*facts)
		want   bool
	}{
		"an accepted one": {func(*facts) {}, true},
		"a denied one":    {func(f *facts) { f.cluster.Spec.HubAcceptsClient = false }, true},
		"one that was never accepted": {func(f *facts) {
			f.cluster.Spec.HubAcceptsClient, f.cluster.Status.Conditions, f.cluster.Annotations = false, nil, nil
		}, true},
		"one that is refused": {func(f *facts) { f.name = "work" }, true},
		"a leaving one":       {func(f *facts) { f.cluster.DeletionTimestamp = deletedAt() }, false},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			f.cluster.Status.Conditions = f.cluster.Status.Conditions[:1]
			tc.change(&f)
			p := decide(f)
			if !tc.want {
				assert.Nil(t, p.cluster)
				return
			}
			require.NotNil(t, p.cluster)
			require.Len(t, p.cluster.Spec.Taints, 1)
			assert.Equal(t, clusterv1.ManagedClusterTaintUnreachable, p.cluster.Spec.Taints[0].Key)
		})
	}
}

// Shows: registration/admission-decided
func TestTaintsSaySinceWhen(t *testing.T) {
	created, now := noon().Add(-time.Hour), noon()
	tests := map[string]struct {
		now         time.Time
		added, want time.Time
	}{
		"a taint without a time is stamped":             {now, time.Time{}, now},
		"a taint keeps its time":                        {now, created.Add(time.Minute), created.Add(time.Minute)},
		"also when it came with the cluster":            {now, created, created},
		"a time from before the cluster is put away":    {now, created.Add(-time.Second), now},
		"a time that has not come yet is put away":      {now, now.Add(time.Second), now},
		"a taint is never older than its cluster":       {created.Add(-time.Minute), time.Time{}, created},
		"also when the clock of the hub runs behind it": {created.Add(-time.Minute), created, created},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			taint := clusterv1.Taint{Key: "k", Effect: clusterv1.TaintEffectNoSelect}
			if !tc.added.IsZero() {
				taint.TimeAdded = metav1.NewTime(tc.added)
			}
			cluster := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{Taints: []clusterv1.Taint{taint}}}
			cluster.CreationTimestamp = metav1.NewTime(created)
			assert.Equal(t, !tc.added.Equal(tc.want), setTaintTimes(cluster, tc.now))
			assert.True(t, tc.want.Equal(cluster.Spec.Taints[0].TimeAdded.Time), "%s", cluster.Spec.Taints[0].TimeAdded)
			assert.False(t, setTaintTimes(cluster, tc.now), "the second time nothing changes")
		})
	}
}

// Shows: registration/admission-decided
func TestAClusterInNoSetJoinsTheDefaultOne(t *testing.T) {
	const label = "cluster.open-cluster-management.io/clusterset"
	for sentence, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"a cluster without labels":     {nil, "default"},
		"a cluster whose set is empty": {map[string]string{label: ""}, "default"},
		"a cluster in another set":     {map[string]string{label: "other"}, "other"},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
			assert.Equal(t, tc.labels[label] != tc.want, joinDefaultSet(cluster))
			assert.Equal(t, tc.want, cluster.Labels[label])
		})
	}
}
