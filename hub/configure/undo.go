package configure

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// undo is what an add-on returns to from a content that was undone. The zero value is one that does not.
type undo struct {
	// content is the name of what was undone, and from the target with it.
	content string
	from    addonconfig.Target
	// failed is set where this cluster failed with it, and not set where all clusters return.
	failed bool
	// active reports whether the add-on has, or gets, what it had before in place of it, which is to.
	active bool
	to     []addonconfig.Chosen
	// kept is why it keeps what it has; empty when it is active.
	kept string
}

// target returns the configuration that the add-on is to have: what the specs ask for, or in place of a content that
// was undone what it had before.
func (f facts) target() addonconfig.Target {
	wanted := f.wanted()
	if !f.undo.active {
		return wanted
	}
	return wanted.Instead(f.undo.to, f.addOn.Status.ConfigReferences)
}

// observeUndone finds out whether all clusters return from what the specs ask for. A policy that cannot be decoded
// begins nothing: the rollout, or the gate, holds what is not there.
func (c *Configurer) observeUndone(ctx context.Context, f *facts) error {
	var err error
	f.rules, err = c.Gates.Rules(ctx, f.addOn.Name)
	if decode.IsUnknown(err) {
		return nil
	}
	if err != nil || !f.rules.Undoes() || f.unselected() {
		return err
	}
	placement, content := f.placementKey(), f.content()
	if !f.rules.Undone(placement, content) {
		return nil
	}
	return c.returns(ctx, f, f.rules.Undo(placement, content))
}

// observeFailed finds out whether the cluster returns from what it failed with. Whether it does so the rollout says, and
// that it did its own status.
func (c *Configurer) observeFailed(ctx context.Context, f *facts) error {
	if f.rules.Policy() == nil || f.undo.content != "" {
		return nil
	}
	content := f.content()
	was := meta.FindStatusCondition(f.addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	noted := meta.FindStatusCondition(f.addOn.Status.Conditions, names.ConditionRolloutFailed)
	before := noted != nil && noted.Reason == addonconfig.ReasonUndone &&
		f.wanted().GivesAll(addonconfig.ReadContents(noted.Message))
	asked := f.admission.Undo && was != nil && f.admission.Way.Progress == was.LastTransitionTime.Unix()
	if !before && !asked || f.rules.Retried(content) {
		return nil
	}
	how := f.rules.Undo(f.placementKey(), content)
	how.Failed = true
	return c.returns(ctx, f, how)
}

// returns finds out what the add-on returns to from what the specs ask for. One that is being deleted keeps what it has.
func (c *Configurer) returns(ctx context.Context, f *facts, how addonconfig.Undo) error {
	f.undo = undo{content: f.content(), from: f.wanted(), failed: how.Failed}
	to, known := how.Return(f.undo.from, f.addOn.Status.ConfigReferences)
	has := chosen(f.addOn.Status.ConfigReferences)
	if !f.addOn.DeletionTimestamp.IsZero() {
		to, known = has, len(has) > 0
	}
	if !known {
		f.undo.kept = "no content completed before it"
		return nil
	}
	more := func(c addonconfig.Chosen) bool { return !slices.Contains(has, c) }
	if slices.ContainsFunc(to, more) {
		lacks, err := c.Store.Lacks(ctx, f.addOn.Name, f.undo.from, to)
		if f.undo.kept = lacks; lacks != "" || err != nil {
			return err
		}
	}
	f.undo.active, f.undo.to = true, to
	return nil
}

// content returns the name of the content that the rollout gives by the specs, whatever the add-on itself names.
func (f facts) content() string {
	common := addonconfig.NewTarget(addonconfig.Inputs{
		AddOn: &addonv1beta1.ManagedClusterAddOn{}, CMA: f.cma, Placement: f.placement, States: f.states,
	})
	return gate.ContentName(f.addOn.Name, addonconfig.Fingerprint(common.Rolled()))
}

// placementKey returns the placement that owns the add-on, as policies name it.
func (f facts) placementKey() string {
	if f.placement < 0 {
		return policies.NoPlacement
	}
	ref := f.cma.Spec.InstallStrategy.Placements[f.placement].PlacementRef
	return addonapi.PlacementKey(ref.Namespace, ref.Name)
}

// admission decides about an add-on that returns, or keeps what it has, where no rollout does. Neither windows nor
// approvals hold a return.
func (u undo) admission(rules gate.Gate) addonconfig.Admission {
	if u.kept != "" {
		return addonconfig.Admission{Reason: causes.WaitsForTurn + "content " + u.content + " was undone, and " + u.kept}
	}
	why := rules.Paused().Held
	return addonconfig.Admission{Granted: why == "", Reason: why}
}

// says returns the message of Configured of an add-on that has something else than the specs ask for, or is to; empty
// for any other.
func (u undo) says() string {
	switch {
	case u.content == "" || u.failed && !u.active:
		return ""
	case u.failed:
		return said(messageConfigured, "content "+u.content+" failed on this cluster and was undone")
	case u.active:
		return said(messageConfigured, "content "+u.content+" was undone")
	}
	return said(messageConfigured, "content "+u.content+" was undone, and this cluster keeps what it has: "+u.kept)
}

// note records that the cluster returned from what it failed with. It counts as long as Progressing is not later.
func (u undo) note(conditions *[]metav1.Condition, progressing metav1.Condition, now time.Time) {
	c := onWay(addonconfig.ReasonUndone)
	c.Message += "; the rollout gave " + u.from.Contents(u.from.References).String()
	reconcile.SetCondition(conditions, c, now)
	noted := meta.FindStatusCondition(*conditions, c.Type)
	if noted.LastTransitionTime.Before(&progressing.LastTransitionTime) {
		noted.LastTransitionTime = progressing.LastTransitionTime
	}
}

// addOnsOfPolicy enqueues the add-ons that wait for a policy, and all of its name where contents are undone, or not any
// more.
func (c *Configurer) addOnsOfPolicy() handler.EventHandler {
	add := func(ctx context.Context, q queue, o client.Object, all bool) {
		requests := c.waitingAddOns
		if all {
			requests = func(ctx context.Context, o client.Object) []ctrl.Request {
				return c.addOnsBy(ctx, addonapi.IndexName, o.GetName())
			}
		}
		for _, request := range requests(ctx, o) {
			q.Add(request)
		}
	}
	undoes := func(o client.Object) bool {
		p, is := o.(*policies.AddOnPolicy)
		return is && len(p.Spec.Undo)+len(p.Status.Undone) > 0
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object, undoes(e.Object)) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			add(ctx, q, e.ObjectNew, gate.UndoChanged(e))
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, undoes(e.Object)) },
	}
}
