package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
	}
}

func acceptedCluster(more ...metav1.Condition) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "u1", ResourceVersion: "7"},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 30},
		Status: clusterv1.ManagedClusterStatus{Conditions: append([]metav1.Condition{
			condition(clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted"),
		}, more...)},
	}
}

func leaseStopped() *clusterv1.ManagedCluster {
	return acceptedCluster(
		condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown, reasonLeaseStopped))
}

func healthy() health { return health{probedAt: noon, version: "v1.35.4"} }

func failingFor(d time.Duration) health {
	return health{probedAt: noon, failingSince: noon.Add(-d), detail: "status code: 500, etcd failed", version: "v1.35.4"}
}

// Shows: registration/apiserver-may-fail
func TestDecide(t *testing.T) {
	denied := acceptedCluster()
	denied.Status.Conditions[0].Status = metav1.ConditionFalse
	clockOff := acceptedCluster(
		condition(clusterv1.ManagedClusterConditionClockSynced, metav1.ConditionFalse, "ManagedClusterClockOutOfSync"))
	tests := map[string]struct {
		facts facts
		want  plan
	}{
		"a cluster that was never accepted gets nothing": {
			facts{cluster: &clusterv1.ManagedCluster{}, health: healthy()}, plan{},
		},
		"a denied cluster loses its heartbeat": {facts{cluster: denied, health: healthy()}, plan{}},
		"an accepted and well cluster is available": {
			facts{cluster: acceptedCluster(), health: healthy()},
			plan{heartbeat: 30 * time.Second, publish: true, availability: available, refresh: true},
		},
		"before the first probe only the join is told": {
			facts{cluster: acceptedCluster()}, plan{heartbeat: 30 * time.Second, publish: true},
		},
		"a short failure changes nothing and is probed again": {
			facts{cluster: acceptedCluster(), health: failingFor(19 * time.Second), wake: noon.Add(probeInterval)},
			plan{heartbeat: 30 * time.Second, publish: true, wake: noon.Add(probeInterval)},
		},
		"twenty seconds of failure make it unavailable": {
			facts{cluster: acceptedCluster(), health: failingFor(20 * time.Second), wake: noon.Add(probeInterval)},
			plan{heartbeat: 30 * time.Second, publish: true, availability: unavailable, wake: noon.Add(probeInterval)},
		},
		"with a clock out of step the heartbeat goes on and nothing is written": {
			facts{cluster: clockOff, health: healthy()}, plan{heartbeat: 30 * time.Second},
		},
		"a heartbeat in the same second takes it back": {
			facts{cluster: leaseStopped(), health: healthy(), lastHeartbeat: noon.Add(-time.Hour)},
			plan{heartbeat: 30 * time.Second, publish: true, availability: available, refresh: true},
		},
		"the hub's Unknown stands until a heartbeat gets through": {
			facts{cluster: leaseStopped(), health: healthy(), lastHeartbeat: noon.Add(-2 * time.Hour)},
			plan{heartbeat: 30 * time.Second, publish: true, refresh: true, awaitHeartbeat: true},
		},
		"the hub's Unknown stands when there never was a heartbeat": {
			facts{cluster: leaseStopped(), health: healthy()},
			plan{heartbeat: 30 * time.Second, publish: true, refresh: true, awaitHeartbeat: true},
		},
		"the hub's Unknown stands also for a cluster that does not answer": {
			facts{cluster: leaseStopped(), health: failingFor(time.Hour), lastHeartbeat: noon.Add(-2 * time.Hour)},
			plan{heartbeat: 30 * time.Second, publish: true, awaitHeartbeat: true},
		},
		"a heartbeat after the hub's Unknown takes it back": {
			facts{cluster: leaseStopped(), health: healthy(), lastHeartbeat: noon},
			plan{heartbeat: 30 * time.Second, publish: true, availability: available, refresh: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.facts.now = noon
			assert.Equal(t, tc.want, decide(tc.facts))
		})
	}
}

// Shows: registration/cluster-status
func TestConcludeTellsInTheWordsOfTheContract(t *testing.T) {
	f := facts{now: noon, cluster: acceptedCluster(), health: failingFor(time.Minute)}
	after := conclude(f, plan{publish: true, availability: unavailable}, nil)
	joined := meta.FindStatusCondition(after.Status.Conditions, clusterv1.ManagedClusterConditionJoined)
	require.NotNil(t, joined)
	assert.Equal(t, "ManagedClusterJoined", joined.Reason)
	assert.Equal(t, "Managed cluster joined", joined.Message)
	got := meta.FindStatusCondition(after.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	require.NotNil(t, got)
	assert.Equal(t, metav1.ConditionFalse, got.Status)
	assert.Equal(t, "ManagedClusterKubeAPIServerUnavailable", got.Reason)
	assert.Equal(t, "The kube-apiserver is not ok, status code: 500, etcd failed", got.Message)
	assert.Empty(t, after.Status.Version.Kubernetes, "what was read before the failure is not refreshed")

	f.cluster, f.health = after, healthy()
	after = conclude(f, decide(f), nil)
	got = meta.FindStatusCondition(after.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	assert.Equal(t, "ManagedClusterAvailable", got.Reason)
	assert.Equal(t, "Managed cluster is available", got.Message)
	assert.Equal(t, "v1.35.4", after.Status.Version.Kubernetes)
}

func TestConcludeKeepsWhatIsUnknown(t *testing.T) {
	cluster := acceptedCluster()
	cluster.Status.Version.Kubernetes = "v1.34.0"
	cluster.Status.Capacity = clusterv1.ResourceList{"cpu": resource.MustParse("4")}
	cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "id.k8s.io", Value: "x"}}
	f := facts{now: noon, cluster: cluster, health: health{probedAt: noon}}
	after := conclude(f, decide(f), nil)
	assert.Equal(t, cluster.Status.Version, after.Status.Version)
	assert.Equal(t, cluster.Status.Capacity, after.Status.Capacity)
	assert.Equal(t, cluster.Status.ClusterClaims, after.Status.ClusterClaims)

	f.claims = []clusterv1.ManagedClusterClaim{}
	f.resources = &resources{capacity: clusterv1.ResourceList{}, allocatable: clusterv1.ResourceList{}}
	after = conclude(f, decide(f), nil)
	assert.Equal(t, cluster.Status.Capacity, after.Status.Capacity, "a resource of another writer stays")
	assert.Empty(t, after.Status.ClusterClaims)

	cluster.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "work-agent", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:capacity":{".":{},"f:cpu":{}}}}`),
	}}
	after = conclude(f, decide(f), nil)
	assert.Empty(t, after.Status.Capacity, "a resource of ours that no node reports goes")
}

func TestASecondPassChangesNothing(t *testing.T) {
	f := facts{
		now: noon, cluster: acceptedCluster(), health: healthy(), claims: []clusterv1.ManagedClusterClaim{{Name: "a"}},
		resources: &resources{capacity: clusterv1.ResourceList{"cpu": resource.MustParse("4000m")}},
	}
	first := conclude(f, decide(f), nil)
	f.cluster, f.now = first, noon.Add(time.Hour)
	f.resources = &resources{capacity: clusterv1.ResourceList{"cpu": resource.MustParse("4")}}
	assert.Equal(t, first, conclude(f, decide(f), nil))
}

// Shows: registration/node-writes
func TestNodesThatComeAndGoCostOneWriteInSomeSeconds(t *testing.T) {
	sums := func(cpu string) *resources {
		return &resources{capacity: clusterv1.ResourceList{"cpu": resource.MustParse(cpu)}}
	}
	f := facts{now: noon, cluster: acceptedCluster(), health: healthy()}
	writes, written := 0, ""
	pass := func(cpu string) plan {
		f.resources = sums(cpu)
		p := decide(f)
		after := conclude(f, p, nil)
		if got := after.Status.Capacity["cpu"]; got.String() != written {
			writes, written, f.summed = writes+1, got.String(), f.now
		}
		f.cluster = after
		return p
	}
	for i := range 600 { // a minute of a node that comes and goes
		pass([]string{"4", "8"}[i%2])
		f.now = f.now.Add(100 * time.Millisecond)
	}
	assert.LessOrEqual(t, writes, 12)
	assert.GreaterOrEqual(t, writes, 6, "and what is reported is not left behind")

	f.now = f.now.Add(sumsPause)
	pass("16")
	assert.Equal(t, "16", written, "a first change is written at once")
	pass("32")
	f.now = f.now.Add(time.Second)
	p := pass("64")
	assert.Equal(t, "16", written)
	assert.Equal(t, f.summed.Add(sumsPause), p.wake, "a pass comes without a further event")
	f.now = p.wake
	assert.Zero(t, pass("64").wake)
	assert.Equal(t, "64", written, "and writes the newest")
}
