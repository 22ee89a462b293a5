package gate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// addOn is one with conditions.
func addOn(conditions ...metav1.Condition) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{Status: addonv1beta1.ManagedClusterAddOnStatus{Conditions: conditions}}
}

func cond(kind, status, reason, text string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: text}
}

// Shows: policies/depends-state
func TestWhatADependencyLacksOnACluster(t *testing.T) {
	well := cond("Available", "True", "Yes", "")
	deleting := addOn(well)
	deleting.DeletionTimestamp = &metav1.Time{Time: noon()}
	between := addOn(well)
	between.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
		DesiredConfig: &addonv1beta1.ConfigSpecHash{SpecHash: "2"}, LastAppliedConfig: &addonv1beta1.ConfigSpecHash{SpecHash: "1"},
	}}
	for sentence, tc := range map[string]struct {
		addOn *addonv1beta1.ManagedClusterAddOn
		not   bool // does not have what it is to have
		want  gate.State
	}{
		"nothing":                            {addOn: addOn(well)},
		"nothing, with what it is to have":   {addOn: addOn(well, cond("Progressing", "False", "Completed", ""))},
		"nothing, where its author makes it": {addOn: addOn(well, cond("Progressing", "False", "WaitingForManifestApplied", ""))},
		"it goes":                            {addOn: deleting, want: gate.State{Lacks: "which is being deleted", Stuck: true}},
		"it says nothing":                    {addOn: addOn(), want: gate.State{Lacks: "which does not have condition Available"}},
		"it broke": {
			addOn: addOn(cond("Available", "False", "No", "no pod.")),
			want:  gate.State{Lacks: "whose condition Available is False: no pod"},
		},
		"it waits itself": {
			addOn: addOn(well, cond("Configured", "False", "Not", "Configurations updated and not configured yet: waits for its "+
				"turn in the rollout: AddOnPolicy b is paused")),
			want: gate.State{Changes: "which waits for its turn in the rollout: AddOnPolicy b is paused"},
		},
		"it is on its way": {
			addOn: addOn(well, cond("Progressing", "True", "Progressing", "")),
			want:  gate.State{Changes: "which does not have its configuration yet"},
		},
		"it has another content than it is to have": {
			addOn: between, want: gate.State{Changes: "which does not have its configuration yet"},
		},
		"it failed": {
			addOn: addOn(well, cond("Progressing", "False", "Failed", "")),
			want:  gate.State{Changes: "which failed to get its configuration", Stuck: true},
		},
		"its rollout gave it up": {
			addOn: addOn(well, cond("Progressing", "True", "Progressing", ""),
				cond("addon.spokelet.io/RolloutFailed", "True", "TimedOut", "")),
			want: gate.State{Changes: "which does not have its configuration yet", Stuck: true},
		},
		"it is to have another content, and does not say so yet": {
			addOn: addOn(well), not: true,
			want: gate.State{Changes: "which is to have another configuration first", Unsaid: true},
		},
		"it failed with that, and has what it had before": {
			addOn: addOn(well, cond("addon.spokelet.io/RolloutFailed", "True", "Undone", "")), not: true,
			want: gate.State{Changes: "which its rollout counts as failed", Stuck: true},
		},
		"it broke later": {addOn: addOn(well, cond("addon.spokelet.io/RolloutFailed", "True", "Failed", ""))},
	} {
		assert.Equal(t, tc.want, gate.StateOf(tc.addOn, "Available", !tc.not), sentence)
	}
}

// Shows: policies/depends-verdict
func TestWhetherAnAddOnMayBeginBesideItsDependencies(t *testing.T) {
	const waits = "waits for its turn in the rollout: it depends on add-on network, "
	broken := gate.State{Lacks: "whose condition Available is False"}
	for sentence, tc := range map[string]struct {
		order, missing  string
		state           gate.State
		held            string
		unusable, wakes bool
		degraded        string
	}{
		"it is there and well": {order: "logs>network"},
		"it is not there": {
			order: "logs>network", state: gate.State{Absent: true}, held: waits + "which is not on this cluster", unusable: true,
			degraded: gate.ReasonRequiredDependency,
		},
		"it is not there and not needed": {order: "logs>network?", state: gate.State{Absent: true}},
		"it is not well": {
			order: "logs>network", state: broken, held: waits + "whose condition Available is False", unusable: true,
			degraded: gate.ReasonRequiredDependency,
		},
		"it is not needed, there, and not well": {
			order: "logs>network?", state: broken, held: waits + "whose condition Available is False", unusable: true,
			degraded: gate.ReasonDependency,
		},
		"it gets another content first": {
			order: "logs>network", state: gate.State{Changes: "which is on its way"}, held: waits + "which is on its way",
		},
		"nobody knows when it has that": {
			order: "logs>network", state: gate.State{Changes: "which failed", Stuck: true}, held: waits + "which failed",
			unusable: true,
		},
		"it does not say so yet": {
			order: "logs>network", state: gate.State{Changes: "which is to change", Unsaid: true},
			held: waits + "which is to change", wakes: true,
		},
		"nobody knows its name": {
			order: "logs>network", missing: "network", state: gate.State{Absent: true},
			held: waits + "of which there is no ClusterManagementAddOn", unusable: true, degraded: gate.ReasonRequiredDependency,
		},
		"nobody knows its name, and it is not needed": {order: "logs>network?", missing: "network", state: gate.State{Absent: true}},
		"they depend on each other": {
			order: "logs>network network>logs", state: broken,
			held: "waits for its turn in the rollout: AddOnPolicy logs: its dependencies are a cycle, which cannot be followed: " +
				"logs > network > logs",
		},
	} {
		g := gate.New("logs", policy(policies.AddOnPolicySpec{}), nil).
			After("logs", order(tc.order), func(name string) bool { return name != tc.missing })
		assert.False(t, g.Open(), sentence)
		c := gate.Cluster{Before: map[string]gate.State{"network": tc.state}}
		v := g.Judge(c, "x", noon())
		assert.Equal(t, tc.held, v.Held, sentence)
		assert.Equal(t, tc.unusable, v.Unusable, sentence)
		assert.Equal(t, tc.wakes, v.Wake.Equal(noon().Add(10*time.Second)), sentence)
		reason, _ := g.Degraded(c)
		assert.Equal(t, tc.degraded, reason, sentence)
	}
}
