package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/events"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/fleet"
)

// A hub manager with --removal-limit-percent=0 records nothing. A silent cluster that its Placement tolerates loses a
// label and is dropped; the hub manager restarts. It kept the add-on for good, and said that the Placement does not
// tolerate the taint, which it has tolerated all the time.
func TestATolerationThatWasAlwaysThereCountsAfterARestartWithoutALimit(t *testing.T) {
	tolerated := func(p *clusterv1beta1.Placement) {
		p.Spec.Tolerations = []clusterv1beta1.Toleration{{Operator: clusterv1beta1.TolerationOpExists}}
	}
	for sentence, restarts := range map[string]bool{"one process": false, "a restart": true} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, false, 0, tolerated)
			h.goesSilent()
			h.passes(time.Hour)
			older, newer := h.othersDrop()
			h.r.ofDecision().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: newer}, h.q)
			h.passes(time.Minute)
			require.Empty(t, h.removed, "five minutes must pass")
			recorder := events.NewFakeRecorder(100)
			if restarts {
				h.r = &Reconciler{
					Client: h, Live: h, AddOns: h.r.AddOns, Clock: h.clock, Workers: 1,
					Placements: &fleet.Placements{Client: h, Clock: h.clock},
				}
				h.q.Add(ofFleet("hello"))
			}
			h.r.Recorder = recorder
			h.passes(24 * time.Hour)
			assert.Equal(t, []string{"c1"}, h.removed)
			for len(recorder.Events) > 0 {
				assert.NotContains(t, <-recorder.Events, "does not tolerate taint", "it does")
			}
		})
	}
}
