package configure

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
)

// undo is what an add-on returns to from a content that was undone. The zero value is one that does not.
type undo struct {
	// content is the name of what was undone, and from the target with it.
	content string
	from    addonconfig.Target
	// how says what may be returned to.
	how addonconfig.Undo
	// failed is set where this cluster failed with it, and not set where all clusters return.
	failed bool
	// active reports whether the add-on has, or gets, what it had before in place of it, which is to.
	active bool
	to     []addonconfig.Chosen
	// kept is why it keeps what it has; empty when it is active.
	kept string
}

// allReturn reports whether all clusters of the placement return from what the specs ask for, and to what.
func (f facts) allReturn() (how addonconfig.Undo, is bool) {
	placement, content := gate.KeyOfPlacement(f.cma, f.placement), f.content()
	if !f.rules.Undone(placement, content) {
		return how, false
	}
	return f.rules.Undo(placement, content, f.undoneHere()), true
}

// failedReturns reports whether the cluster returns from what it failed with, and to what. Whether it does so the
// rollout says, and that it did its own status.
func (f facts) failedReturns() (how addonconfig.Undo, is bool) {
	if f.rules.Policy() == nil || f.undo.content != "" {
		return how, false
	}
	was := meta.FindStatusCondition(f.addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	asked := f.admission.Undo && was != nil && f.admission.Way.Progress == was.LastTransitionTime.Unix()
	if f.admission.Undo && len(f.addOn.Status.ConfigReferences) == 0 { // The add-on before this one returned.
		asked = asked || f.admission.Way == addonconfig.Way{}
	}
	noted := meta.FindStatusCondition(f.addOn.Status.Conditions, names.ConditionRolloutFailed)
	if !asked && noted == nil {
		return how, false // Most did not fail, and no content needs a name for that.
	}
	content := f.content()
	if !f.returnedFrom(content) && (!asked || f.rules.Retried(content)) {
		return how, false
	}
	how = f.rules.Undo(gate.KeyOfPlacement(f.cma, f.placement), content, f.undoneHere())
	how.Failed = true
	return how, true
}

// returns decides what the add-on returns to, and reports whether it needs contents that it does not have. One that is
// being deleted keeps what it has.
func (f *facts) returns(how addonconfig.Undo) (needs bool) {
	f.undo = undo{content: f.content(), from: f.wanted(), how: how, failed: how.Failed}
	to, known := how.Return(f.undo.from, f.addOn.Status.ConfigReferences)
	has := addonconfig.ChosenBy(f.addOn.Status.ConfigReferences)
	if len(has) == 0 && len(how.Completed) > 0 { // It is new.
		to, known = how.Completed[0], true
	}
	if !f.addOn.DeletionTimestamp.IsZero() {
		to, known = has, len(has) > 0
	}
	if !known {
		f.undo.kept = gate.Nothing(how)
		return false
	}
	f.undo.active, f.undo.to = true, to
	return slices.ContainsFunc(to, func(c addonconfig.Chosen) bool { return !slices.Contains(has, c) })
}

// admission decides about an add-on that returns, or keeps what it has, where no rollout does. Neither windows nor
// approvals hold a return.
func (u undo) admission(rules gate.Gate) addonconfig.Admission {
	if u.kept != "" {
		return addonconfig.Admission{Reason: gate.WasUndone(u.content, u.kept)}
	}
	why := rules.Paused().Held
	return addonconfig.Admission{Granted: why == "", Reason: why}
}
