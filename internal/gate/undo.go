package gate

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// NothingBefore is why nothing returns from a content where none is known that completed before it.
const NothingBefore = "no content completed before it"

// UndoneBefore is why a cluster returns to nothing where all that completed before was undone on it.
const UndoneBefore = "what completed before it was undone on this cluster"

// NameOfTarget returns the name by which the content of a target is approved and undone: what the rollout gives of it.
func NameOfTarget(addOn string, t addonconfig.Target) string {
	return ContentName(addOn, addonconfig.Fingerprint(t.Rolled()))
}

// KeyOfPlacement returns the name that policies have for a placement of an add-on, by its index; a negative one stands
// for add-ons that no placement installs.
func KeyOfPlacement(cma *addonv1beta1.ClusterManagementAddOn, index int) string {
	if index < 0 {
		return policies.NoPlacement
	}
	ref := cma.Spec.InstallStrategy.Placements[index].PlacementRef
	return addonapi.PlacementKey(ref.Namespace, ref.Name)
}

// WasUndone returns what is said of a cluster that waits because a content was undone, and why it gets nothing else.
func WasUndone(content, why string) string {
	return causes.WaitsForTurn + "content " + content + " was undone, and " + why
}

// Rules returns the gate of an add-on with its policy alone, for callers that ask for no verdict.
func (r *Reader) Rules(ctx context.Context, addOn string) (Gate, error) {
	if r == nil {
		return Gate{}, nil
	}
	policy, err := reconcile.Peek(ctx, r.Client, types.NamespacedName{Name: addOn}, &policies.AddOnPolicy{})
	if err != nil || policy == nil || !policy.DeletionTimestamp.IsZero() {
		return Gate{}, err
	}
	return Gate{policy: policy}, nil
}

// Undoes reports whether any cluster returns, or may return, to a former content. Then a rollout decides about the
// clusters of all strategies.
func (g Gate) Undoes() bool {
	if g.policy == nil {
		return false
	}
	action, _ := g.OnFailure()
	return action != policies.ActionStop || len(g.policy.Spec.Undo)+len(g.policy.Status.Undone) > 0
}

// OnFailure returns what becomes of clusters on which a content failed for a time.
func (g Gate) OnFailure() (policies.Action, time.Duration) {
	if g.policy == nil || g.policy.Spec.OnFailure == nil || g.policy.Spec.OnFailure.Action == "" {
		return policies.ActionStop, 0
	}
	return g.policy.Spec.OnFailure.Action, g.policy.Spec.OnFailure.After.Duration
}

// Retried reports whether a content may be rolled out although it was undone.
func (g Gate) Retried(content string) bool {
	return g.policy != nil && slices.Contains(g.policy.Spec.Retry, content)
}

// Undone reports whether all clusters of a placement return from a content. What the hub manager undid counts as soon
// as the status says so.
func (g Gate) Undone(placement, content string) bool {
	switch {
	case g.policy == nil:
		return false
	case slices.Contains(g.policy.Spec.Undo, content):
		return true
	case g.Retried(content):
		return false
	}
	return slices.ContainsFunc(g.policy.Status.Undone, func(u policies.Undone) bool {
		return u.Content == content && u.By == policies.ByPolicy && u.Action == policies.ActionUndoAll &&
			slices.Contains(u.Placements, placement)
	})
}

// Undo returns what a cluster of a placement returns to from a content. here are the contents that were undone on the
// cluster itself, as it says; nil for what all clusters return to. They count where the policy has them as undone.
func (g Gate) Undo(placement, content string, here []string) addonconfig.Undo {
	here = slices.DeleteFunc(slices.Clone(here), func(name string) bool { return !g.Remembers(name) })
	undo := addonconfig.Undo{Any: len(here) > 0 || g.undoesOther(placement, content)}
	undo.Undone = func(applied []addonconfig.Chosen) bool {
		name := ContentName(g.policy.Name, addonconfig.FingerprintOf(applied))
		return g.Undone(placement, name) || slices.Contains(here, name)
	}
	for _, c := range g.completed(placement) {
		switch {
		case c.Content == content || g.Undone(placement, c.Content):
		case slices.Contains(here, c.Content):
			undo.LeavesOut = true
		default:
			undo.Completed = append(undo.Completed, ContentOf(c))
		}
	}
	return undo
}

// undoesOther reports whether all clusters of a placement return from a content other than one.
func (g Gate) undoesOther(placement, than string) bool {
	other := func(content string) bool { return content != than && g.Undone(placement, content) }
	return slices.ContainsFunc(g.policy.Spec.Undo, other) ||
		slices.ContainsFunc(g.policy.Status.Undone, func(u policies.Undone) bool { return other(u.Content) })
}

// Nothing returns why a cluster returns to nothing, of which how knows nothing.
func Nothing(how addonconfig.Undo) string {
	if how.LeavesOut {
		return UndoneBefore
	}
	return NothingBefore
}

// Remembers reports whether the policy says of a content that it is undone, for all clusters or for those that failed
// with it, and that it may not be tried again.
func (g Gate) Remembers(content string) bool {
	switch {
	case g.policy == nil:
		return false
	case slices.Contains(g.policy.Spec.Undo, content):
		return true
	}
	is := func(u policies.Undone) bool { return u.Content == content }
	return !g.Retried(content) && slices.ContainsFunc(g.policy.Status.Undone, is)
}

// Completed reports whether a content completed for a placement.
func (g Gate) Completed(placement, content string) bool {
	is := func(c policies.CompletedContent) bool { return c.Content == content }
	return slices.ContainsFunc(g.completed(placement), is)
}

func (g Gate) completed(placement string) []policies.CompletedContent {
	if g.policy == nil {
		return nil
	}
	for _, p := range g.policy.Status.Placements {
		if p.Placement == placement {
			return p.Completed
		}
	}
	return nil
}

// ContentOf returns the contents of configurations that completed.
func ContentOf(c policies.CompletedContent) []addonconfig.Chosen {
	all := make([]addonconfig.Chosen, 0, len(c.Configurations))
	for _, of := range c.Configurations {
		all = append(all, addonconfig.Chosen{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: of.Group, Resource: of.Resource},
			ConfigSpecHash: addonv1beta1.ConfigSpecHash{
				ConfigReferent: addonv1beta1.ConfigReferent{Namespace: of.Namespace, Name: of.Name}, SpecHash: of.SpecHash,
			},
		})
	}
	return all
}

// CompletedContent returns what a status says of contents that completed.
func CompletedContent(content string, contents []addonconfig.Chosen) policies.CompletedContent {
	c := policies.CompletedContent{Content: content, Configurations: []policies.ConfigurationContent{}}
	for _, of := range contents {
		c.Configurations = append(c.Configurations, policies.ConfigurationContent{
			Group: of.Group, Resource: of.Resource, Namespace: of.Namespace, Name: of.Name, SpecHash: of.SpecHash,
		})
	}
	return c
}

// Exhausted holds a content of a placement that no cluster begins with, because so many contents before it were tried
// and undone in a row.
func (g Gate) Exhausted(placement, content string) Verdict {
	if action, _ := g.OnFailure(); action == policies.ActionStop || slices.Contains(g.policy.Spec.Approved, content) ||
		g.Retried(content) {
		return Verdict{}
	}
	if g.Completed(placement, content) {
		return Verdict{}
	}
	most := int(g.policy.Spec.OnFailure.MaxTries)
	if most == 0 {
		most = policies.DefaultMaxTries
	}
	tries := 0
	for _, u := range g.policy.Status.Undone {
		if u.Content == content {
			return Verdict{}
		}
		all := u.Action == policies.ActionUndoAll && slices.Contains(u.Placements, placement)
		if u.By == policies.ByPolicy && (all || slices.Contains(u.Tries, placement)) {
			tries++
		}
	}
	if tries < most {
		return Verdict{}
	}
	return held(fmt.Sprintf("AddOnPolicy %s undid %d contents in a row, and spec.onFailure.maxTries is %d; content %s "+
		"begins when spec.approved has it", g.policy.Name, tries, most, content))
}

// Lets reports whether neither a pause nor a missing approval holds a content, whatever its wave.
func (g Gate) Lets(content string) bool {
	return g.policy == nil || g.policy.Spec.Paused == nil &&
		(!g.approves() || slices.Contains(g.policy.Spec.Approved, content))
}

// Paused is the verdict about what neither a window nor an approval holds, such as a return to a former content.
func (g Gate) Paused() Verdict {
	if g.policy == nil || g.policy.Spec.Paused == nil {
		return Verdict{}
	}
	return g.pause()
}

// Memory identifies what a policy remembers: which contents were undone, and which ones completed. It is in the status,
// so that no generation tells of it.
func Memory(p *policies.AddOnPolicy) string {
	all := []any{undone(p)}
	for _, of := range p.Status.Placements {
		all = append(all, of.Placement)
		for _, c := range of.Completed {
			all = append(all, c.Content)
		}
	}
	return fmt.Sprint(all...)
}

// RulesChanged passes changes of policies by which something else is decided: the status says which contents the hub
// manager undid.
func RulesChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  UndoChanged,
	})
}

// UndoChanged reports whether a change of a policy concerns what clusters return from.
func UndoChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*policies.AddOnPolicy)
	is, also := e.ObjectNew.(*policies.AddOnPolicy)
	return ok && also && !reflect.DeepEqual(undoing(was), undoing(is))
}

// undoing is what of a policy says what clusters return from.
func undoing(p *policies.AddOnPolicy) any {
	return []any{p.Spec.Undo, p.Spec.Retry, p.Spec.OnFailure, undone(p)}
}

// undone is what was undone, without what only people read.
func undone(p *policies.AddOnPolicy) (all []policies.Undone) {
	for _, u := range p.Status.Undone {
		all = append(all, policies.Undone{
			Content: u.Content, By: u.By, Action: u.Action, Placements: u.Placements, Tries: u.Tries,
		})
	}
	return all
}
