package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/fleet"
)

// A person denied the cluster by mistake and accepts it again seconds later, while the hub manager is replaced: the new
// one has never seen it denied. The decisions are those of the time in which it was denied, because a placement of a
// large hub is decided later than three seconds after the start. The condition of the cluster says since when it is
// accepted.
func TestAnAddOnStaysThoughItsClusterWasAcceptedAgainWhileTheHubManagerWasAway(t *testing.T) {
	since := func(kind string, ago time.Duration) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon().Add(-ago))}
	}
	again := func(f *facts) {
		f.managed.Status.Conditions = []metav1.Condition{
			since(clusterv1.ManagedClusterConditionHubAccepted, 4*time.Second),
			since(clusterv1.ManagedClusterConditionAvailable, time.Hour),
		}
	}
	while := decided("p", "x").but(func(s *scene) {
		s.since, s.own = noon().Add(-4*time.Second), true
		s.pages[0].CreationTimestamp = metav1.NewTime(noon().Add(-time.Minute))
		s.placement.Status.Conditions = append(s.placement.Status.Conditions, fleet.Mark(1, s.pages))
	})
	for sentence, tc := range map[string]struct {
		created time.Duration
		noted   time.Duration
		removed bool
	}{
		"the add-on was there before":         {created: time.Hour, noted: 4 * time.Second},
		"the add-on came with the acceptance": {created: 30 * time.Second, noted: 4 * time.Second, removed: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			created := func(f *facts) { f.addon.SetCreationTimestamp(metav1.NewTime(noon().Add(-tc.created))) }
			f := removalOf(with(ready(false), installed, again, created), while.known())
			f.candidates[0].absence = absence{noted: noon().Add(-tc.noted)}
			r := decideRemovals(f)
			assert.Equal(t, tc.removed, len(r.remove) == 1, "what it has on the cluster goes, and it is installed again")
			assert.Equal(t, tc.removed, r.wake.IsZero())
		})
	}
}
