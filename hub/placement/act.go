package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/placement/layout"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// maxWrites is how many slices a pass writes: 5,000 clusters where a slice is full. A Placement with a decision group
// for each cluster has as many slices as there are clusters, and must not hold a worker until all of them are written.
const maxWrites = 50

// act writes the decision slices in the order of the plan, up to maxWrites of those that are there and of those that
// are made, and reports whether that was all of them, or more are left for a next pass. As many that are refused do not
// hold up the others, and a pass begins behind the one that was refused last. If a slice that gains clusters is not
// written, those that lose clusters wait.
func (r *Reconciler) act(ctx context.Context, key types.NamespacedName, decisionSlices []layout.Slice,
) (all, more bool, err error) {
	var failed []error
	refused, _ := r.memory.refused.Get(key)
	decisionSlices, refused = behind(decisionSlices, refused), ""
	// Those that are made count apart: a quota may refuse them, which must not hold up the others.
	written, kept := map[bool]int{}, false
	for _, p := range decisionSlices {
		if !p.Changed() || ((more || len(failed) > 0) && !p.Gains) {
			continue
		}
		made := p.Have == nil
		if written[made] == maxWrites {
			more = true
			continue
		}
		if err := r.write(ctx, p); err != nil {
			failed, refused = append(failed, err), p.Name()
			if len(failed) <= maxWrites {
				continue
			}
		}
		written[made]++
		kept = kept || (p.Want == nil && !p.Kept() && len(p.Have.Finalizers) > 0)
	}
	r.memory.refuse(key, refused)
	// One that a finalizer keeps is emptied by the pass that its event starts, which then says that all is decided.
	return !more && !kept, more, errors.Join(failed...)
}

// behind returns slices in another order: those that gain clusters begin behind the one of a name, where there is one.
func behind(all []layout.Slice, name string) []layout.Slice {
	at := slices.IndexFunc(all, func(p layout.Slice) bool { return p.Gains && p.Name() == name })
	if at < 0 {
		return all
	}
	gains := slices.IndexFunc(all, func(p layout.Slice) bool { return !p.Gains })
	if gains < 0 {
		gains = len(all)
	}
	return slices.Concat(all[at+1:gains], all[:at+1], all[gains:])
}

func (r *Reconciler) write(ctx context.Context, p layout.Slice) error {
	if p.Kept() {
		return client.IgnoreNotFound(r.writeDecisions(ctx, p.Have, p.Have, []clusterv1beta1.ClusterDecision{}))
	}
	if p.Want == nil {
		uid := p.Have.UID
		err := r.Client.Delete(ctx, p.Have, client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting PlacementDecision %s: %w", client.ObjectKeyFromObject(p.Have), err)
		}
		return nil
	}
	have, list := p.Have, p.Want.Status.Decisions
	want := p.Want.DeepCopy()
	if have == nil {
		if err := r.Client.Create(ctx, want); err != nil {
			return fmt.Errorf("creating PlacementDecision %s: %w", client.ObjectKeyFromObject(want), err)
		}
		have = want.DeepCopy()
	} else if _, err := reconcile.PatchMain(ctx, r.Client, have, want); err != nil {
		return err
	}
	return r.writeDecisions(ctx, have, want, list)
}

// writeDecisions writes the decisions into the status of the slice as the server has it now.
func (r *Reconciler) writeDecisions(
	ctx context.Context, have, now *clusterv1beta1.PlacementDecision, list []clusterv1beta1.ClusterDecision,
) error {
	before, after := now.DeepCopy(), now.DeepCopy()
	before.Status = *have.Status.DeepCopy()
	after.Status.Decisions = list
	_, err := reconcile.PatchStatus(ctx, r.Client, before, after)
	return err
}
