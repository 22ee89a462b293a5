package fleets

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/rollout"
)

// Shows: hub/upgrade-every-fleet
func TestNoClusterGetsAVersionBecauseAnotherOneBreaks(t *testing.T) {
	tally := Run(t.Context(), Upgrade(Senses{}), Options{Seed: 1, Games: 150, Workers: 2})
	assert.Equal(t, 150, tally.Games)
	assert.Empty(t, tally.Violations)
}

func TestThePropertyOfUpgradesNoticesEachBug(t *testing.T) {
	completed := func(addOn *addonv1beta1.ManagedClusterAddOn) *metav1.Condition {
		return meta.FindStatusCondition(addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	}
	for name, senses := range map[string]Senses{
		"a cluster that breaks while it soaks counts as done": {Configured: func(before, after *addonv1beta1.ManagedClusterAddOn) {
			was := completed(before)
			if len(before.Status.ConfigReferences) == 0 || was == nil || was.Reason != addonv1beta1.ProgressingReasonCompleted {
				return
			}
			after.Status.ConfigReferences[0].LastAppliedConfig = before.Status.ConfigReferences[0].LastAppliedConfig
		}},
		"add-ons that come later are not awaited": {World: func(w *rollout.World) { w.Served = nil }},
		"pods that are not ready do not count":    {Progress: func(p *addon.Progress) { p.RollingOut = nil }},
		"the clock of the agent counts": {World: func(w *rollout.World) {
			for i, addOn := range w.AddOns {
				w.AddOns[i] = addOn.DeepCopy()
				for j := range w.AddOns[i].Status.Conditions {
					if c := &w.AddOns[i].Status.Conditions[j]; c.Type == "Available" && c.LastTransitionTime.After(w.Now) {
						c.Status = metav1.ConditionTrue
					}
				}
			}
		}},
		"decisions are taken for complete": {World: func(w *rollout.World) {
			for _, d := range w.Placements {
				d.Incomplete = nil
			}
		}},
		"all clusters are one group": {World: func(w *rollout.World) {
			for _, d := range w.Placements {
				for name := range d.Groups {
					group := d.Groups[name]
					group.Name = ""
					d.Groups[name] = group
				}
			}
		}},
		"the clock runs ahead": {World: func(w *rollout.World) { w.Now = w.Now.Add(time.Hour) }},
	} {
		t.Run(name, func(t *testing.T) {
			tally := Run(t.Context(), Upgrade(senses), Options{Seed: 1, Games: 150, Workers: 2})
			assert.Positive(t, tally.Violated)
			t.Logf("%d of %d: %v", tally.Violated, tally.Games, tally.Violations[:min(1, len(tally.Violations))])
		})
	}
}
