package fleets

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/rollout"
)

// bentConfig returns what shows the planner another rollout than there is.
func bentConfig(change func(*clusterv1alpha1.RolloutConfig)) func(*rollout.World) {
	return func(w *rollout.World) {
		w.CMA = w.CMA.DeepCopy()
		change(&w.CMA.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.RolloutConfig)
	}
}

// Shows: hub/upgrade-every-fleet, invariants/not-by-another, invariants/rollout-ends
func TestNoClusterGetsAVersionBecauseAnotherOneBreaks(t *testing.T) {
	tally := Run(t.Context(), Upgrade(Senses{}), Options{Seed: 1, Games: 150, Workers: 2})
	assert.Equal(t, 150, tally.Games)
	assert.Empty(t, tally.Violations)
}

// Shows: invariants/not-by-another, invariants/rollout-ends
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
		"failures do not stop a rollout": {World: bentConfig(func(c *clusterv1alpha1.RolloutConfig) {
			c.MaxFailures = intstr.FromString("100%")
		})},
		"a failure frees its place before the deadline": {World: bentConfig(func(c *clusterv1alpha1.RolloutConfig) {
			c.ProgressDeadline = "None"
		})},
		"clusters on their way fail too early": {World: bentConfig(func(c *clusterv1alpha1.RolloutConfig) {
			if c.ProgressDeadline != "" {
				c.ProgressDeadline = "1s"
			}
		})},
		"an add-on that is created again inherits an admission": {ByName: true},
		"with a fix, broken clusters are as any others": {World: func(w *rollout.World) {
			for i, addOn := range w.AddOns {
				if desired := desiredOf(addOn); desired == "" || desired == w.States[upgraded].Hash {
					continue
				}
				w.AddOns[i] = addOn.DeepCopy()
				for j := range w.AddOns[i].Status.Conditions {
					switch c := &w.AddOns[i].Status.Conditions[j]; c.Type {
					case addonv1beta1.ManagedClusterAddOnConditionAvailable:
						c.Status = metav1.ConditionTrue
					case addonv1beta1.ManagedClusterAddOnConditionProgressing:
						c.Reason = addonv1beta1.ProgressingReasonCompleted
					}
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
