package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observeFleet reads the facts about the removal of one add-on from clusters: what was noted since the last pass, and
// all its clusters only after a start, after an edit, or where the limit may be reached.
func (r *Reconciler) observeFleet(ctx context.Context, name string) (f fleetFacts, err error) {
	f = fleetFacts{now: r.Clock.Now(), limit: r.Limit, undecided: map[types.NamespacedName]fleet.Undecided{},
		unjudged: map[types.NamespacedName]map[string]bool{}}
	var first bool
	first, f.last = r.memory.begin(name)
	defer func() {
		if err != nil && first {
			r.memory.restart(name)
		}
	}()
	if f.cma, err = r.AddOns.PeekClusterManagementAddOn(ctx, name); err != nil || f.cma == nil {
		return f, err
	}
	strategy := addonapi.StrategyOf(f.cma)
	if !strategy.ByPlacements || !addonapi.Managed(f.cma) || !f.cma.GetDeletionTimestamp().IsZero() {
		return f, nil
	}
	f.state = parseState(f.cma.GetAnnotations()[names.AnnotationRemovalState])
	r.memory.recall(name, f.state.Recent)
	if err := r.observeUnselected(ctx, &f, name, strategy, first); err != nil {
		return f, err
	}
	f.candidates, err = r.candidates(ctx, f, name)
	return f, err
}

// observeUnselected reads the decisions, and which of the noted clusters they do not select.
func (r *Reconciler) observeUnselected(
	ctx context.Context, f *fleetFacts, name string, strategy addonapi.Strategy, first bool,
) error {
	for _, key := range strategy.Placements {
		unjudged := r.Placements.Passes.Unknown(key)
		d, err := r.Placements.Decisions(ctx, key)
		if err != nil {
			return err
		}
		f.placements = append(f.placements, d)
		if undecided, is := r.Placements.Passes.Undecided(key); d.Own && is {
			f.undecided[key] = undecided
		}
		f.unjudged[key] = unjudged
	}
	if err := r.observeIntent(ctx, f, name, strategy); err != nil {
		return err
	}
	if first {
		if _, err := r.scan(ctx, *f, name); err != nil {
			return err
		}
	}
	f.recent = r.memory.recent(name, f.now.Add(-removalPeriod))
	noted := r.prune(*f, name)
	if f.limit.Percent == 0 || (!f.isHeld() && noted+sum(f.recent) <= f.limit.Clusters) {
		return nil
	}
	var err error
	f.size, err = r.scan(ctx, *f, name)
	return err
}

// observeIntent reads what people decide about placements.
func (r *Reconciler) observeIntent(
	ctx context.Context, f *fleetFacts, name string, strategy addonapi.Strategy,
) error {
	var bindings []*clusterv1beta2.ManagedClusterSetBinding
	f.bindings = map[string][]*clusterv1beta2.ManagedClusterSetBinding{}
	for _, key := range strategy.Placements {
		if _, seen := f.bindings[key.Namespace]; seen {
			continue
		}
		var list clusterv1beta2.ManagedClusterSetBindingList
		if err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing the ManagedClusterSetBindings of namespace %s: %w", key.Namespace, err)
		}
		f.bindings[key.Namespace] = reconcile.Pointers(list.Items)
		bindings = append(bindings, f.bindings[key.Namespace]...)
	}
	slices.SortFunc(bindings, func(a, b *clusterv1beta2.ManagedClusterSetBinding) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	var list clusterv1beta2.ManagedClusterSetList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ManagedClusterSets: %w", err)
	}
	f.sets = make(map[string]*clusterv1beta2.ManagedClusterSet, len(list.Items))
	for i := range list.Items {
		f.sets[list.Items[i].Name] = &list.Items[i]
	}
	f.intent = intentOf(strategy.Placements, f.placements, bindings, f.sets)
	f.intentSince = r.memory.intentSince(name, f.intent, f.now)
	if at := time.Unix(f.state.EditSince, 0); f.state.Edit == f.intent && at.Before(f.intentSince) {
		f.intentSince = at
	}
	return nil
}

// scan looks at all add-ons of a name, notes those that no placement selects, and returns how many placements
// installed.
func (r *Reconciler) scan(ctx context.Context, f fleetFacts, name string) (int, error) {
	size := 0
	err := r.AddOns.EachAddOn(ctx, func(addon client.Object) {
		if !addon.GetDeletionTimestamp().IsZero() || (!isOurs(addon) && installedBy(addon) == "") {
			return
		}
		if isOurs(addon) {
			size++
		}
		if !f.selects(addon.GetNamespace()) {
			r.memory.note(name, addon.GetNamespace(), false, f.now)
		}
	}, client.MatchingFields{addonapi.IndexName: name}, decode.LeaveOut)
	return size, err
}

// prune forgets the noted clusters that a placement selects, and returns how many are left.
func (r *Reconciler) prune(f fleetFacts, name string) int {
	left := 0
	for cluster := range r.memory.unselected(name) {
		if f.selects(cluster) {
			r.memory.forget(name, f.last, cluster)
		} else {
			left++
		}
	}
	return left
}

// candidates reads the add-ons that may be unselected, and their clusters.
func (r *Reconciler) candidates(ctx context.Context, f fleetFacts, name string) ([]candidate, error) {
	noted := r.memory.unselected(name)
	all := make([]candidate, 0, len(noted))
	for cluster, absence := range noted {
		c := candidate{cluster: cluster}
		var err error
		c.addon, err = r.AddOns.PeekAddOn(ctx, types.NamespacedName{Namespace: cluster, Name: name})
		if err == nil {
			c.managed, err = r.cluster(ctx, cluster)
		}
		if decode.IsUnknown(err) {
			all = append(all, candidate{cluster: cluster, absence: absence, unread: true})
			continue // It stays noted, and keeps its add-on.
		}
		if err != nil {
			return nil, err
		}
		c.absence = absence.update(c.managed, f.now)
		c.absence.available = r.memory.availableSince(c.managed)
		if c.absence != absence {
			r.memory.learn(name, cluster, c.absence)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b candidate) int { return strings.Compare(a.cluster, b.cluster) })
	return all, nil
}

// selects reports whether a placement selects a cluster.
func (f fleetFacts) selects(cluster string) bool {
	return slices.ContainsFunc(f.placements, func(d *fleet.Decisions) bool { return d.Selects(cluster) })
}
