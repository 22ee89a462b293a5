package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// An edit drops c1, whose agent writes the status of its ManagedCluster all the time, so that the removal is never
// confirmed. Later c2 loses its label.
//
// Shows: hub/removal-limit
func TestAnEditOfYesterdayExplainsNoRemovalOfToday(t *testing.T) {
	for sentence, changes := range map[string]bool{
		"the cluster of the edit is as the cache has it": false,
		"the cluster of the edit changes all the time":   true,
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			h.r.Limit = Limit{Percent: 25}
			h.q.Add(ofFleet("hello"))
			h.passes(time.Minute)
			h.q.Add(ofFleet("hello")) // the event of the annotation that it wrote
			h.passes(time.Minute)
			h.r.Live = h.writing(func() bool { return changes })
			binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}}
			require.NoError(t, h.Create(t.Context(), binding)) // an edit
			h.q.Add(ofFleet("hello"))
			h.dropped("c1")
			h.passes(20 * time.Minute)
			h.q.Add(ofFleet("hello"))
			h.passes(20 * time.Minute)
			h.removed = nil
			h.dropped("c1", "c2") // no edit explains that of c2
			h.passes(10 * time.Minute)
			assert.NotContains(t, h.removed, "c2", "more than a quarter of the clusters, which no edit explains")
		})
	}
}
