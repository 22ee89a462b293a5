package configure

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Another controller decides for 3,000 clusters: it says so in the status of the Placement, and writes thirty pages. Each
// of them changes the number in the reason why that is in doubt. All add-ons of the fleet that list the Placement await
// it, and each pass writes the number into their status.
func TestEachPageOfADecisionIsNoPassOfTheFleetThatAwaitsIt(t *testing.T) {
	const pages, size = 30, 100
	high := placement("high")
	high.placement.Status.NumberOfSelectedClusters = pages * size
	s := newSelected(t, "high", []string{"low", "high"}, append(placement("low", "c1").objects(), high.placement)...)
	_, _, _ = s.pass(t)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	handler := s.c.wakesAwaiting(placementOfDecision)
	passes, said := 0, map[string]bool{}
	for i := range pages {
		var clusters []string
		for j := range size {
			clusters = append(clusters, fmt.Sprintf("x%04d", i*size+j))
		}
		page := placement("high", clusters...).page
		page.Name = fmt.Sprintf("high-decision-%d", i+1)
		require.NoError(t, s.c.Client.Create(t.Context(), page))
		handler.Create(t.Context(), event.CreateEvent{Object: page}, q)
		for q.Len() > 0 {
			request, _ := q.Get()
			q.Done(request)
			passes++
			_, says, _ := s.pass(t)
			said[says] = true
		}
	}
	assert.LessOrEqual(t, passes, 3, "it is told that pages are missing, and then that they are not")
	assert.LessOrEqual(t, len(said), 3)
}
