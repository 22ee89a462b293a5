package timed

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/fleets"
)

// all are the rules.
var all = []string{
	"approval", "deadline", "finished", "groups", "instant", "overlap", "patience", "pause", "restart", "sentence",
	"settles", "silence", "wakes", "window",
}

// Shows: policies/policy-pause, policies/policy-approval, policies/policy-finishes, policies/window-order
// Shows: invariants/held-begins-not, invariants/waits-are-told, invariants/waits-count-not, invariants/held-by-objects
func TestPoliciesAndWindowsHoldWhatTheySay(t *testing.T) {
	tally := fleets.Run(t.Context(), Policies(Bend{}), fleets.Options{Seed: 1, Games: 400, Workers: 2})
	assert.Empty(t, tally.Violations)
	for _, rule := range all {
		assert.Positive(t, tally.Rules[rule].Games, "%s was not looked at", rule)
	}
	assert.Len(t, tally.Rules, len(all), "%v", tally.Rules)
}

// edited returns what writes another message of Configured into add-ons.
func edited(change func(string) string) func(_, after *addonv1beta1.ManagedClusterAddOn) {
	return func(_, after *addonv1beta1.ManagedClusterAddOn) {
		if c := meta.FindStatusCondition(after.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured); c != nil {
			c.Message = change(c.Message)
		}
	}
}

// Shows: invariants/held-begins-not, invariants/waits-are-told, invariants/waits-count-not, invariants/held-by-objects
func TestEachRuleNoticesABug(t *testing.T) {
	writes := 0
	for name, tc := range map[string]struct {
		bend Bend
		rule string
	}{
		"a pause is not seen": {Bend{Policy: func(p *policies.AddOnPolicy) { p.Spec.Paused = nil }}, "pause"},
		"an approval is one of every content": {Bend{Policy: func(p *policies.AddOnPolicy) {
			if len(p.Spec.Approved) > 0 {
				p.Spec.Approval = policies.ApprovalNone
			}
		}}, "approval"},
		"clocks show the time of UTC": {Bend{Window: func(w *policies.MaintenanceWindow) { w.Spec.TimeZone = "" }}, "window"},
		"clocks never jump": {Bend{Window: func(w *policies.MaintenanceWindow) {
			if w.Spec.TimeZone == "Europe/Berlin" {
				w.Spec.TimeZone = "Etc/GMT-1"
			}
		}}, "instant"},
		"nobody denies": {Bend{Window: func(w *policies.MaintenanceWindow) {
			if w.Spec.Kind == "Deny" {
				w.Spec.AddOns = []string{"other"}
			}
		}}, "window"},
		"a window never ends": {Bend{Window: func(w *policies.MaintenanceWindow) { w.Spec.Until = nil }}, "sentence"},
		"labels do not count": {Bend{Window: func(w *policies.MaintenanceWindow) {
			w.Spec.ClusterSelector = metav1.LabelSelector{}
		}}, "sentence"},
		"windows of other add-ons count": {Bend{Window: func(w *policies.MaintenanceWindow) { w.Spec.AddOns = nil }}, "sentence"},
		"the claim of another cluster counts": {Bend{Cluster: func(c *gate.Cluster) {
			c.Claims = map[string]string{zoneClaim: "UTC"}
		}}, "window"},
		"a minute too long": {Bend{Window: func(w *policies.MaintenanceWindow) {
			w.Spec.Duration.Duration += time.Minute
		}}, "instant"},
		"it never wakes": {Bend{Wake: func(time.Time) time.Time { return time.Time{} }}, "silence"},
		"it wakes a minute late": {Bend{Wake: func(at time.Time) time.Time {
			if at.IsZero() {
				return at
			}
			return at.Add(time.Minute)
		}}, "silence"},
		"it wakes too early, again and again": {Bend{Wake: func(time.Time) time.Time {
			return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		}}, "wakes"},
		"who waits is late": {Bend{Said: func(r *rollout.Rehearsed) {
			for n := range r.Placements {
				for _, wait := range r.Placements[n].Hold {
					r.Placements[n].TimedOut = append(r.Placements[n].TimedOut, wait.Name)
				}
			}
		}}, "patience"},
		"the time that it waited counts": {Bend{World: func(w *rollout.World) {
			for n := range w.AddOns {
				w.AddOns[n] = w.AddOns[n].DeepCopy()
				c := meta.FindStatusCondition(w.AddOns[n].Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
				if c != nil {
					c.LastTransitionTime.Time = c.LastTransitionTime.Add(-time.Hour)
				}
			}
		}}, "deadline"},
		"what is begun is never finished": {Bend{Written: func(_, after *addonv1beta1.ManagedClusterAddOn) {
			for n := range after.Status.ConfigReferences {
				after.Status.ConfigReferences[n].LastAppliedConfig = nil
			}
		}}, "finished"},
		"it says nothing of windows": {Bend{Written: edited(func(said string) string {
			return strings.ReplaceAll(said, "MaintenanceWindow", "Window")
		})}, "sentence"},
		"it names a later instant": {Bend{Written: edited(func(said string) string {
			return strings.ReplaceAll(said, ":00Z", ":30Z")
		})}, "instant"},
		"it writes for ever": {Bend{Written: edited(func(said string) string {
			writes++
			return said + fmt.Sprint(writes)
		})}, "settles"},
		"one that is started sees no windows": {Bend{Later: true, World: func(w *rollout.World) { w.Gate = gate.Gate{} }}, "restart"},
		"the second one sees no windows":      {Bend{Later: true, World: func(w *rollout.World) { w.Gate = gate.Gate{} }}, "overlap"},
		"groups do not wait": {Bend{World: func(w *rollout.World) {
			for _, d := range w.Placements {
				for name := range d.Groups {
					of := d.Groups[name]
					of.Name = ""
					d.Groups[name] = of
				}
			}
		}}, "groups"},
	} {
		t.Run(name, func(t *testing.T) {
			tally := fleets.Run(t.Context(), Policies(tc.bend), fleets.Options{Seed: 1, Games: 250, Workers: 1})
			assert.Positive(t, tally.Rules[tc.rule].Violated, "%s: %v", tc.rule, tally.Rules)
		})
	}
}

// Shows: invariants/undone-once, invariants/undone-ends
func TestContentsThatFailAreUndoneOnce(t *testing.T) {
	tally := fleets.Run(t.Context(), Undo(Bend{}), fleets.Options{Seed: 1, Games: 400, Workers: 2})
	assert.Empty(t, tally.Violations)
	for _, rule := range []string{"settles", "undo ends", "undo names", "undo once", "undo paused", "undo to", "undo why", "undone stays"} {
		assert.Positive(t, tally.Rules[rule].Games, "%s was not looked at", rule)
	}
}

// Shows: invariants/undone-once, invariants/undone-ends
func TestEachRuleOfUndoNoticesABug(t *testing.T) {
	for name, tc := range map[string]struct {
		bend Bend
		rule string
	}{
		"a pause does not hold it":        {Bend{Policy: func(p *policies.AddOnPolicy) { p.Spec.Paused = nil }}, "undo paused"},
		"what a person retries is undone": {Bend{Policy: func(p *policies.AddOnPolicy) { p.Spec.Retry = nil }}, "undo once"},
		"it forgets what it undid": {Bend{Written: func(_, after *addonv1beta1.ManagedClusterAddOn) {
			meta.RemoveStatusCondition(&after.Status.Conditions, names.ConditionRolloutFailed)
		}, Policy: func(p *policies.AddOnPolicy) { p.Status.Undone = nil }}, "undone stays"},
		"it returns to what nobody had": {Bend{Policy: func(p *policies.AddOnPolicy) {
			for i := range p.Status.Placements {
				for j := range p.Status.Placements[i].Completed {
					c := &p.Status.Placements[i].Completed[j]
					c.Configurations = slices.Clone(c.Configurations)
					for k := range c.Configurations {
						c.Configurations[k].SpecHash = "9"
					}
				}
			}
		}}, "undo to"},
		"nothing is undone": {Bend{Policy: func(p *policies.AddOnPolicy) { p.Spec.OnFailure = nil }}, "undo ends"},
		"what is well is undone": {Bend{Said: func(r *rollout.Rehearsed) {
			if r.Policy != nil && len(r.Policy.Status.Placements) > 0 {
				r.Policy.Status.Undone = []policies.Undone{{
					Content: r.Policy.Status.Placements[0].Content, By: policies.ByPolicy, Action: policies.ActionUndoAll,
				}}
			}
		}}, "undo why"},
		"all contents have one name": {Bend{Said: func(r *rollout.Rehearsed) {
			if r.Policy != nil {
				for i := range r.Policy.Status.Placements {
					r.Policy.Status.Placements[i].Content = "one"
				}
			}
		}}, "undo names"},
	} {
		t.Run(name, func(t *testing.T) {
			tally := fleets.Run(t.Context(), Undo(tc.bend), fleets.Options{Seed: 1, Games: 400, Workers: 2})
			assert.Positive(t, tally.Rules[tc.rule].Violated, "%s: %v", tc.rule, tally.Rules)
		})
	}
}

// Shows: invariants/ordered
func TestAddOnsComeAndGoInTheirOrder(t *testing.T) {
	tally := fleets.Run(t.Context(), Order(OrderBend{}), fleets.Options{Seed: 1, Games: 3000, Workers: 2})
	assert.Empty(t, tally.Violations)
	for rule, bend := range map[string]OrderBend{
		"order":    {State: func(s *gate.State) { s.Lacks = "" }},
		"sentence": {Judge: func(v *gate.Verdict) { v.Held = strings.ReplaceAll(v.Held, "add-on", "it") }},
		"cycle":    {Judge: func(v *gate.Verdict) { v.Held = strings.ReplaceAll(v.Held, " > ", ", ") }},
		"reverse":  {Others: func(o *gate.Others) { o.Hold = nil }},
		"ends":     {Others: func(o *gate.Others) { o.Hold = []string{"x"} }},
	} {
		bent := fleets.Run(t.Context(), Order(bend), fleets.Options{Seed: 1, Games: 300, Workers: 1})
		assert.Positive(t, bent.Rules[rule].Violated, "%s: %v", rule, bent.Rules)
	}
}
