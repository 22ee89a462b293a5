package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observe reads the facts about one add-on on one cluster from the cache.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (facts, error) {
	f := facts{now: r.Clock.Now(), cluster: key.Namespace, owners: r.AddOns.Owners, asOCM: r.TrustAsOCM}
	var err error
	if f.cma, err = r.AddOns.PeekClusterManagementAddOn(ctx, key.Name); err != nil || f.cma == nil {
		return f, err
	}
	if f.addon, err = r.AddOns.PeekAddOn(ctx, key); err != nil {
		return f, err
	}
	if f.managed, err = r.cluster(ctx, key.Namespace); err != nil {
		return f, err
	}
	if f.managed == nil {
		r.memory.came(key.Name, key.Namespace) // Nothing is installed there again.
	}
	f.namespace, err = reconcile.Peek(ctx, r.Client, types.NamespacedName{Name: key.Namespace}, reconcile.Namespace())
	if err != nil {
		return f, err
	}
	f.selected, err = r.selected(ctx, key.Namespace, addonapi.StrategyOf(f.cma))
	if err == nil {
		var o gate.Others
		o, err = r.Gates.Others(ctx, r.Gates.Known(ctx), key)
		f.brought = len(o.Bring) > 0
	}
	_, notReady := unready(f)
	went := (f.selected || f.brought) && f.addon == nil && notReady == nil && r.memory.went(key.Name, key.Namespace)
	if err == nil && (went || getsOwner(f)) {
		f.outdated, err = r.isOutdated(ctx, f.cma)
	}
	return f, err
}

// cluster reads a ManagedCluster, which must not be changed; nil when it does not exist.
func (r *Reconciler) cluster(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	return reconcile.Peek(ctx, r.Client, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{})
}

// selected reports whether a placement of an install strategy selects a cluster.
func (r *Reconciler) selected(ctx context.Context, cluster string, strategy addonapi.Strategy) (bool, error) {
	if len(strategy.Placements) == 0 {
		return false, nil
	}
	selecting, err := r.placementsOf(ctx, cluster)
	if err != nil {
		return false, err
	}
	for _, key := range strategy.Placements {
		if selecting[key] {
			return true, nil
		}
	}
	return false, nil
}

// placementsOf returns the placements that select a cluster.
func (r *Reconciler) placementsOf(ctx context.Context, cluster string) (map[types.NamespacedName]bool, error) {
	var pages clusterv1beta1.PlacementDecisionList
	if err := r.Client.List(ctx, &pages, client.UnsafeDisableDeepCopy,
		client.MatchingFields{addonapi.IndexCluster: cluster}); err != nil {
		return nil, fmt.Errorf("finding the placements that select cluster %s: %w", cluster, err)
	}
	keys := make(map[types.NamespacedName]bool, len(pages.Items))
	for i := range pages.Items {
		if key, ok := placementOf(&pages.Items[i]); ok {
			keys[key] = true
		}
	}
	return keys, nil
}

// placementOf returns the placement that a PlacementDecision belongs to.
func placementOf(page client.Object) (types.NamespacedName, bool) {
	name := page.GetLabels()[names.LabelPlacement]
	return types.NamespacedName{Namespace: page.GetNamespace(), Name: name}, name != ""
}

// isOutdated reports whether the cache has a ClusterManagementAddOn that is gone or going, or another one of that name.
// The garbage collector deletes its add-ons then, and would do so again and again with those that are installed again.
func (r *Reconciler) isOutdated(ctx context.Context, cached client.Object) (bool, error) {
	key := client.ObjectKeyFromObject(cached)
	live, err := reconcile.Get(ctx, r.Live, key, r.AddOns.MetadataOfClusterManagementAddOn())
	if apierrors.IsForbidden(err) {
		return false, nil // The rights of an earlier version do not let us ask.
	}
	return err == nil && (live == nil || live.GetUID() != cached.GetUID() || !live.GetDeletionTimestamp().IsZero()), err
}

// observeFleet reads the facts about the removal of one add-on from clusters: what was noted since the last pass, and
// all its clusters only after a start, after an edit, or where the limit may be reached.
func (r *Reconciler) observeFleet(ctx context.Context, name string) (f fleetFacts, err error) {
	f = fleetFacts{
		now: r.Clock.Now(), limit: r.Limit, own: r.Placements.Own,
		undecided: map[types.NamespacedName]fleet.Undecided{}, unjudged: map[types.NamespacedName]map[string]bool{},
	}
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
	if err := r.observeDependencies(ctx, &f, name); err != nil {
		return f, err
	}
	if !f.removes() || !addonapi.Managed(f.cma) || !f.cma.GetDeletionTimestamp().IsZero() {
		return f, nil
	}
	f.state = parseState(f.cma.GetAnnotations()[names.AnnotationRemovalState])
	r.memory.recall(name, f.state.Recent)
	if err := r.observeUnselected(ctx, &f, first); err != nil {
		return f, err
	}
	f.candidates, err = r.candidates(ctx, f, name)
	return f, err
}

// observeUnselected reads the decisions, and which of the noted clusters they do not select.
func (r *Reconciler) observeUnselected(ctx context.Context, f *fleetFacts, first bool) error {
	name := f.cma.GetName()
	for _, key := range addonapi.StrategyOf(f.cma).Placements {
		unjudged := r.Placements.Passes.Unknown(key)
		d, err := r.Placements.Decisions(ctx, key)
		if decode.IsUnknown(err) { // It is uncertain like one that is misconfigured, and no more.
			d, err = r.Placements.Undecoded(ctx, key, err)
		}
		if err != nil {
			return err
		}
		f.placements = append(f.placements, d)
		if undecided, is := r.Placements.Passes.Undecided(key); d.Own && is {
			f.undecided[key] = undecided
		}
		f.unjudged[key] = unjudged
	}
	if err := r.observeIntents(ctx, f, name); err != nil {
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

// observeIntents reads what people decide about placements, and which clusters these may select.
func (r *Reconciler) observeIntents(ctx context.Context, f *fleetFacts, name string) error {
	f.bindings = map[string][]*clusterv1beta2.ManagedClusterSetBinding{}
	for _, d := range f.placements {
		namespace := d.Key.Namespace
		if _, seen := f.bindings[namespace]; seen {
			continue
		}
		bindings, err := r.bindings(ctx, namespace)
		if err != nil {
			return err
		}
		f.bindings[namespace] = bindings
	}
	var err error
	if f.sets, err = r.sets(ctx); err != nil {
		return err
	}
	f.inSets = map[string]clustersets.Members{}
	for namespace, bindings := range f.bindings {
		bound, _ := clustersets.BoundSets(bindings, f.sets)
		if members, err := clustersets.MembersOf(bound, f.sets); err == nil { // Otherwise it may have any cluster.
			f.inSets[namespace] = members
		}
	}
	f.earlier = map[types.NamespacedName]earlier{}
	for _, d := range f.placements {
		members, known := f.inSets[d.Key.Namespace]
		if was, seen := r.memory.placement(d, f.own, members, known); seen {
			f.earlier[d.Key] = was
		}
	}
	f.intents = r.memory.intentsOf(name, intentsOf(f.placements, f.bindings, f.sets), f.now)
	for key, pending := range f.state.Edits {
		is, listed := f.intents[key]
		if at := time.Unix(pending.Since, 0); listed && pending.To == is.is && at.Before(is.since) {
			f.intents[key] = intent{is.is, at}
		}
	}
	return nil
}

// bindings reads the bindings of a namespace, in the order of their names.
func (r *Reconciler) bindings(
	ctx context.Context, namespace string,
) ([]*clusterv1beta2.ManagedClusterSetBinding, error) {
	var list clusterv1beta2.ManagedClusterSetBindingList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ManagedClusterSetBindings of namespace %s: %w", namespace, err)
	}
	byName := func(a, b *clusterv1beta2.ManagedClusterSetBinding) int { return strings.Compare(a.Name, b.Name) }
	return slices.SortedFunc(slices.Values(reconcile.Pointers(list.Items)), byName), nil
}

// sets reads all ManagedClusterSets, by their names.
func (r *Reconciler) sets(ctx context.Context) (map[string]*clusterv1beta2.ManagedClusterSet, error) {
	var list clusterv1beta2.ManagedClusterSetList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ManagedClusterSets: %w", err)
	}
	sets := make(map[string]*clusterv1beta2.ManagedClusterSet, len(list.Items))
	for _, set := range reconcile.Pointers(list.Items) {
		sets[set.Name] = set
	}
	return sets, nil
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
			r.memory.note(client.ObjectKeyFromObject(addon), f.now)
		}
	}, client.MatchingFields{addonapi.IndexName: name}, decode.LeaveOut)
	return size, err
}

// prune forgets the noted clusters that a placement selects, and returns how many are left.
func (r *Reconciler) prune(f fleetFacts, name string) int {
	left := 0
	for cluster := range r.memory.unselected(name) {
		if f.selects(cluster) {
			r.memory.chosen(name, f.last, cluster, f.now)
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
		c, key := candidate{cluster: cluster}, types.NamespacedName{Namespace: cluster, Name: name}
		var err error
		c.addon, err = r.AddOns.PeekAddOn(ctx, key)
		if err == nil {
			c.managed, err = r.cluster(ctx, cluster)
		}
		if err == nil {
			c.others, err = r.Gates.Others(ctx, f.order, key)
		}
		if decode.IsUnknown(err) {
			all = append(all, candidate{cluster: cluster, absence: absence, unread: true})
			continue // It stays noted, and keeps its add-on.
		}
		if err != nil {
			return nil, err
		}
		c.absence = absence.update(c.managed, f.now)
		if reach := f.reachOf(c); c.absence.apart.IsZero() || c.absence.reach != reach {
			c.absence.reach, c.absence.apart = reach, f.now
		}
		c.absence.available = r.memory.availableSince(c.managed)
		if c.absence != absence {
			r.memory.learn(key, c.absence)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b candidate) int { return strings.Compare(a.cluster, b.cluster) })
	return all, nil
}
