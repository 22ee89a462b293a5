package numbers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/expiry"
	"github.com/spokelet/spokelet/internal/names"
)

func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// cluster is an accepted cluster with conditions.
func cluster(name string, conditions ...metav1.Condition) clusterv1.ManagedCluster {
	c := clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.HubAcceptsClient = true
	accepted := condition(clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "A", "")
	c.Status.Conditions = append([]metav1.Condition{accepted}, conditions...)
	return c
}

// addOn is an add-on on a cluster with conditions.
func addOn(namespace, name string, conditions ...metav1.Condition) client.Object {
	a := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	a.Status.Conditions = conditions
	return a
}

// heartbeat is the Lease of a cluster, renewed some time before noon.
func heartbeat(cluster string, before time.Duration) coordinationv1.Lease {
	at := metav1.NewMicroTime(noon().Add(-before))
	return coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "managed-cluster-lease"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &at},
	}
}

// broken is a fleet of which much is wrong.
func broken() facts {
	alive := condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue, "Available", "")
	silent := condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown, causes.ReasonClusterSilent, "")
	life := func(text string) metav1.Condition {
		return condition("ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated",
			"client certificate rotated starting from "+text)
	}
	waiting := cluster("d")
	waiting.Spec.HubAcceptsClient, waiting.Status.Conditions = false, nil
	complete := condition("Progressing", metav1.ConditionFalse, addonv1beta1.ProgressingReasonCompleted, "")
	works := condition("Available", metav1.ConditionTrue, "Works", "")
	leaving := addOn("a", "metrics", works)
	leaving.SetDeletionTimestamp(&metav1.Time{Time: noon()})
	stopped := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "logs"}}
	stopped.Status.InstallProgressions = []addonv1beta1.InstallProgression{{
		Conditions: []metav1.Condition{condition("Progressing", metav1.ConditionTrue, addonv1beta1.ProgressingReasonProgressing,
			causes.HasStopped+"2 of 3 clusters failed")},
	}, {}}
	return facts{
		now: noon(),
		clusters: []clusterv1.ManagedCluster{
			cluster("a", alive, life("2026-11-29 12:00:00 +0000 UTC to 2026-12-29 12:00:00 +0000 UTC")),
			cluster("b", alive, life("2026-11-01 12:00:00 +0000 UTC to 2026-12-01 12:00:00 +0000 UTC")),
			cluster("c", silent), waiting,
		},
		addOns: []client.Object{
			addOn("a", "logs", works, complete, life("2026-11-29 12:00:00 +0000 UTC to 2026-12-02 12:00:00 +0000 UTC")),
			addOn("b", "logs", condition("addon.spokelet.io/WorkloadsReady", metav1.ConditionFalse, "WorkloadNotReady", ""), complete),
			addOn("c", "logs", works, condition("Configured", metav1.ConditionFalse, "NotConfigured",
				causes.NotConfigured+": "+causes.WaitsForTurn+"maxConcurrency is 1")),
			addOn("a", "made-by-a-tenant"), leaving,
		},
		definitions: []*addonv1beta1.ClusterManagementAddOn{
			stopped, {ObjectMeta: metav1.ObjectMeta{Name: "metrics", Annotations: map[string]string{
				names.AnnotationRemovalHeld:  "placements stopped selecting 3 clusters",
				names.AnnotationRemovalState: `{"held":"AAAAAAAABBBBBBBBCCCCCCCC"}`,
			}}},
		},
		paused: map[string]bool{"metrics": true},
		leases: []coordinationv1.Lease{
			heartbeat("a", 30*time.Second), heartbeat("b", -time.Hour), heartbeat("c", 3*time.Hour), heartbeat("d", time.Hour),
		},
	}
}

func TestAFleetIsCounted(t *testing.T) {
	n := count(broken())
	assert.Equal(t, map[causes.Code]int{well: 2, causes.ClusterSilent: 1, causes.ClusterNotAccepted: 1}, n.clusters)
	assert.Equal(t, map[ofAddOn[causes.Code]]int{
		{"logs", well}: 2, {"logs", causes.WorkloadNotReady}: 1, {"metrics", causes.DeletionWaits}: 1,
		{undefined, causes.AddOnUnmanaged}: 1,
	}, n.addOns, "the name of an add-on that nobody defined is no label")
	assert.Equal(t, map[ofAddOn[causes.Stage]]int{
		{"logs", causes.StageComplete}: 2, {"logs", causes.StageWaiting}: 1, {undefined, causes.StageWaiting}: 1,
	}, n.stages, "what is being deleted does not move any more")
	assert.Equal(t, map[string]int{"logs": 1, "metrics": 0}, n.stopped, "who has none is there for an alert")
	assert.Equal(t, []time.Duration{30 * time.Second, 0, 3 * time.Hour}, n.ages,
		"a clock that is ahead has no negative age, and a cluster that is not accepted sends no heartbeats")
	assert.Equal(t, map[expiry.Kind]time.Time{
		expiry.Agent: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), expiry.AddOn: time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC),
	}, n.certificates.First)
	assert.Equal(t, map[expiry.Kind]int{expiry.Agent: 1, expiry.AddOn: 0}, n.certificates.Late)
	assert.Equal(t, map[string]int{"logs": 0, "metrics": 3}, n.held)

	empty := count(facts{now: noon()})
	assert.Empty(t, empty.certificates.First)
	assert.Equal(t, map[expiry.Kind]int{expiry.Agent: 0, expiry.AddOn: 0}, empty.certificates.Late, "who has none late is there for an alert")
	assert.Empty(t, empty.clusters)
}

func TestAgesAreInCumulativeBuckets(t *testing.T) {
	buckets, sum := histogram([]time.Duration{time.Minute, time.Minute + 1, 25 * time.Hour})
	assert.Equal(t, map[float64]uint64{60: 1, 120: 2, 300: 2, 900: 2, 3600: 2, 21600: 2, 86400: 2}, buckets)
	assert.InDelta(t, 60+60+25*3600, sum, 0.001)
	buckets, _ = histogram(nil)
	assert.Len(t, buckets, len(bounds()), "a fleet without clusters has all buckets")
}
