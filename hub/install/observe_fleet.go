package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observeFleet reads the facts about the removal of one add-on from clusters: what was noted since the last pass, and
// all its clusters only after a start, after an edit, or where the limit may be reached.
func (r *Reconciler) observeFleet(ctx context.Context, name string) (fleetFacts, error) {
	f := fleetFacts{now: r.Clock.Now(), limit: r.Limit}
	var err error
	if f.cma, err = r.AddOns.PeekClusterManagementAddOn(ctx, name); err != nil || f.cma == nil {
		return f, err
	}
	strategy := addonapi.StrategyOf(f.cma)
	if !strategy.ByPlacements || !addonapi.Managed(f.cma) || !f.cma.GetDeletionTimestamp().IsZero() {
		return f, nil
	}
	f.state = parseState(f.cma.GetAnnotations()[names.AnnotationRemovalState])
	for _, key := range strategy.Placements {
		d, err := r.decisions(ctx, key)
		if err != nil {
			return f, err
		}
		f.placements = append(f.placements, d)
	}
	if err := r.observeIntent(ctx, &f, name, strategy); err != nil {
		return f, err
	}
	if r.memory.begin(name, f.state.Recent) {
		if _, err := r.scan(ctx, f, name); err != nil {
			r.memory.restart(name)
			return f, err
		}
	}
	f.recent = r.memory.recent(name, f.now.Add(-removalPeriod))
	noted := r.prune(f, name)
	if f.limit.Percent > 0 && (f.isHeld() || noted+sum(f.recent) > f.limit.Clusters) {
		if f.size, err = r.scan(ctx, f, name); err != nil {
			return f, err
		}
	}
	f.candidates, err = r.candidates(ctx, f, name)
	return f, err
}

// decisions returns what is known about the decisions of a Placement.
func (r *Reconciler) decisions(ctx context.Context, key types.NamespacedName) (*Decisions, error) {
	placement, err := reconcile.Get(ctx, r.Client, key, &clusterv1beta1.Placement{}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	var list clusterv1beta1.PlacementDecisionList
	if err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{names.LabelPlacement: key.Name}); err != nil {
		return nil, fmt.Errorf("listing the decisions of Placement %s: %w", key, err)
	}
	pages := reconcile.Pointers(list.Items)
	return r.memory.update(key, func(before *Decisions) *Decisions {
		return NewDecisions(key, placement, pages, r.OwnPlacements, r.Clock.Now(), before)
	}), nil
}

// observeIntent reads what people decide about placements.
func (r *Reconciler) observeIntent(
	ctx context.Context, f *fleetFacts, name string, strategy addonapi.Strategy,
) error {
	if f.limit.Percent == 0 {
		return nil
	}
	var bindings []*clusterv1beta2.ManagedClusterSetBinding
	seen := sets.New[string]()
	for _, key := range strategy.Placements {
		if seen.Has(key.Namespace) {
			continue
		}
		seen.Insert(key.Namespace)
		var list clusterv1beta2.ManagedClusterSetBindingList
		if err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing the ManagedClusterSetBindings of namespace %s: %w", key.Namespace, err)
		}
		bindings = append(bindings, reconcile.Pointers(list.Items)...)
	}
	slices.SortFunc(bindings, func(a, b *clusterv1beta2.ManagedClusterSetBinding) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	var list clusterv1beta2.ManagedClusterSetList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ManagedClusterSets: %w", err)
	}
	bound := make(map[string]*clusterv1beta2.ManagedClusterSet, len(list.Items))
	for i := range list.Items {
		bound[list.Items[i].Name] = &list.Items[i]
	}
	f.intent = intentOf(strategy.Placements, f.placements, bindings, bound)
	f.intentSince = r.memory.intentSince(name, f.intent, f.now)
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
	}, client.MatchingFields{addonapi.IndexName: name})
	return size, err
}

// prune forgets the noted clusters that a placement selects, and returns how many are left.
func (r *Reconciler) prune(f fleetFacts, name string) int {
	left := 0
	for cluster := range r.memory.unselected(name) {
		if f.selects(cluster) {
			r.memory.forget(name, cluster)
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
		if err != nil {
			return nil, err
		}
		if c.managed, err = r.cluster(ctx, cluster); err != nil {
			return nil, err
		}
		c.absence = absence.update(c.managed, f.now)
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
	return slices.ContainsFunc(f.placements, func(d *Decisions) bool { return d.Selects(cluster) })
}
