package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/fleet"
)

// An agent writes the time of a condition of its cluster once in 50 seconds. No placement selects the cluster.
func TestAnAgentKeepsNoAddOnByTheTimeOfACondition(t *testing.T) {
	for _, kind := range []string{
		"", clusterv1.ManagedClusterConditionHubAccepted, clusterv1.ManagedClusterConditionAvailable,
	} {
		t.Run("writes "+kind, func(t *testing.T) {
			var m memory
			m.begin("hello")
			m.drop(types.NamespacedName{Namespace: "c000", Name: "hello"}, keyOfOurs(), true, noon())
			cluster := crowd(1).candidates[0].managed
			since := func(kind string, at time.Time) {
				c := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}
				meta.RemoveStatusCondition(&cluster.Status.Conditions, kind)
				cluster.Status.Conditions = append(cluster.Status.Conditions, c)
			}
			since(clusterv1.ManagedClusterConditionHubAccepted, noon().Add(-time.Hour))
			since(clusterv1.ManagedClusterConditionAvailable, noon().Add(-time.Hour))
			m.see(nil, cluster.DeepCopy(), noon())
			removed := 0
			for at := time.Duration(0); at < time.Hour; at += 10 * time.Second {
				now := noon().Add(at)
				if kind != "" && int(at.Seconds())%50 == 0 {
					was := cluster.DeepCopy()
					since(kind, now.Add(-time.Second))
					m.see(was, cluster.DeepCopy(), now)
				}
				f := crowd(1, func(f *fleetFacts) {
					f.now, f.intents = now, intended("now", noon().Add(-time.Minute))
					f.state.Intents = intents("before")
					d := decided("p").but(func(s *scene) {
						s.since, s.own = noon().Add(-time.Hour), true
						s.placement.Status.Conditions = append(s.placement.Status.Conditions, fleet.Mark(1, s.pages))
					}).known()
					f.placements = []*fleet.Decisions{d}
					f.candidates[0].managed = cluster.DeepCopy()
					f.candidates[0].addon.SetCreationTimestamp(metav1.NewTime(noon().Add(-24 * time.Hour)))
					a := m.unselected("hello")["c000"].update(cluster, now)
					a.available = m.availableSince(cluster)
					m.learn(types.NamespacedName{Namespace: "c000", Name: "hello"}, a)
					f.candidates[0].absence = a
				})
				removed += len(decideRemovals(f).remove)
			}
			assert.Positive(t, removed, "the add-on is removed though the agent writes a time")
		})
	}
}
