package install

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// What a removal follows from is asked from the API server before it is done, the definition before an add-on that went
// is installed again or one gets an owner, and the cluster before an add-on follows its annotations. A cache may be
// behind by minutes, and by more for one kind than for another: an API server that a process finds when it starts may
// be the one that has seen nothing for a while.

// confirm returns an error if the definition and the decisions from which removals follow are not those that the API
// server has.
func (r *Reconciler) confirm(ctx context.Context, f fleetFacts, p removals) error {
	if len(p.remove)+len(p.relabel) == 0 {
		return nil
	}
	live, err := reconcile.Get(ctx, r.Live, client.ObjectKeyFromObject(f.cma), r.AddOns.WatchedClusterManagementAddOn())
	if err != nil {
		return err
	}
	const state = names.AnnotationRemovalState
	if live == nil || !sameScope(f.cma, live) || live.GetAnnotations()[state] != f.cma.GetAnnotations()[state] {
		return behindDefinition(f.cma.GetName())
	}
	if err := r.confirmOrder(ctx, f, p); err != nil {
		return err
	}
	for d := range p.concerned {
		if err := r.Placements.Confirm(ctx, r.Live, d); err != nil {
			return err
		}
	}
	if !f.anyEdited() && !p.scoped {
		return nil
	}
	for namespace, bindings := range f.bindings {
		bound := fleet.Bound{Namespace: namespace, Bindings: bindings, Sets: f.sets}
		if err := bound.Confirm(ctx, r.Live); err != nil {
			return err
		}
	}
	return nil
}

// still returns an error if the definition or the decisions from which removals follow are others by now: removing
// add-ons from thousands of clusters takes minutes, in which a user may take back what dropped them.
func (r *Reconciler) still(ctx context.Context, f fleetFacts, p removals) error {
	cma, err := r.AddOns.PeekClusterManagementAddOn(ctx, f.cma.GetName())
	if err != nil {
		return err
	}
	if cma == nil || !sameScope(f.cma, cma) {
		return behindDefinition(f.cma.GetName())
	}
	for d := range p.concerned {
		now, err := r.Placements.Decisions(ctx, d.Key)
		if err != nil {
			return err
		}
		if now != d {
			return behindPlacement(d)
		}
	}
	return nil
}

// looked returns an error if our placement has not looked at a change of the cluster from which an add-on is removed,
// or of what concerns all of them, or was not even told, or cannot tell any more whether it selects the cluster.
func (r *Reconciler) looked(f fleetFacts, c candidate) error {
	for _, d := range c.concerned {
		undecided, is := r.Placements.Passes.UndecidedAbout(d.Key, c.cluster)
		if d.Own && ((is && f.holds(c, undecided)) || !r.Placements.Passes.Saw(c.managed) ||
			r.Placements.Passes.Unknown(d.Key)[c.cluster]) {
			return behindPlacement(d)
		}
	}
	return nil
}

// apart returns an error if a Placement that may have dropped a cluster, and did not matter any more, may select it by
// now: its binding is back.
func (r *Reconciler) apart(ctx context.Context, f fleetFacts, c candidate) error {
	if len(c.concerned) == len(f.placements) {
		return nil
	}
	sets, err := r.sets(ctx)
	if err != nil {
		return err
	}
	for _, d := range f.placements {
		if slices.Contains(c.concerned, d) || !c.absence.mayBe(f.id(d)) {
			continue
		}
		bindings, err := r.bindings(ctx, d.Key.Namespace)
		if err != nil {
			return err
		}
		bound, _ := clustersets.BoundSets(bindings, sets)
		if members, err := clustersets.MembersOf(bound, sets); err != nil || members.Has(c.managed.Labels) {
			return behindPlacement(d)
		}
	}
	return nil
}

// confirmCluster returns a candidate with its cluster as the API server has it, and an error if the add-on is not
// removed by that: a Placement that matters decides otherwise about the cluster than about the copy in the cache, or
// others matter, or the cluster is away or denied. That an agent writes its status all the time keeps nothing.
func (r *Reconciler) confirmCluster(ctx context.Context, f fleetFacts, c candidate) (candidate, error) {
	live, err := reconcile.Get(ctx, r.Live, types.NamespacedName{Name: c.cluster}, &clusterv1.ManagedCluster{})
	if err != nil || same(live, c.managed) {
		return c, err
	}
	if live != nil { // The cache keeps a part of it.
		if _, err := (&hubprocess.Trims{}).Cluster(live); err != nil {
			return c, fmt.Errorf("trimming cluster %s: %w", c.cluster, err)
		}
	}
	if live == nil || c.managed == nil || live.UID != c.managed.UID ||
		slices.ContainsFunc(c.concerned, func(d *fleet.Decisions) bool { return !r.decidesAlike(d, live, c.managed) }) {
		return c, behindCluster(c.cluster)
	}
	now := c
	now.managed = live
	now.concerned, now.fewer = f.concerned(now)
	if _, done, why := f.judge(now); done || why != nil || !slices.Equal(now.concerned, c.concerned) {
		return c, behindCluster(c.cluster)
	}
	return now, nil
}

// decidesAlike reports whether a Placement decides the same about two copies of a cluster. What another program looks
// at is not known: the labels, the taints, the acceptance and the claims count, and whether the cluster was away in
// between, for then it may have been dropped for that. The addresses and the lease are the business of the agent.
func (r *Reconciler) decidesAlike(d *fleet.Decisions, live, cached *clusterv1.ManagedCluster) bool {
	if d.Own {
		return r.Placements.Passes.DecidesAlike(d.Key, live, cached)
	}
	return equality.Semantic.DeepEqual(live.Spec.Taints, cached.Spec.Taints) &&
		live.Spec.HubAcceptsClient == cached.Spec.HubAcceptsClient && maps.Equal(live.Labels, cached.Labels) &&
		slices.Equal(live.Status.ClusterClaims, cached.Status.ClusterClaims) &&
		well(live) == well(cached) && availableSince(live).Equal(availableSince(cached))
}

// confirmCopied returns an error if an add-on would follow annotations of its cluster that are not those of the API
// server. That would be an edit like any other: by an earlier hosting cluster or earlier values, its works would be
// deleted where they belong.
func (r *Reconciler) confirmCopied(ctx context.Context, f facts, p plan) error {
	if !p.follows {
		return nil
	}
	live, err := reconcile.Get(ctx, r.Live, types.NamespacedName{Name: f.cluster}, &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"},
	})
	if err != nil {
		return err
	}
	have, cached := f.addon.GetAnnotations(), f.managed.Annotations
	if live == nil || !sameCopied(have, live.Annotations, cached, f.asOCM) {
		return behindCluster(f.cluster)
	}
	return nil
}

// same reports whether two copies of a cluster, nil where it does not exist, are one version of it.
func same(a, b *clusterv1.ManagedCluster) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}

func behindDefinition(name string) error {
	return reconcile.Behind(addonv1beta1.GroupName, "clustermanagementaddons", name)
}

func behindCluster(name string) error {
	return reconcile.Behind(clusterv1.GroupName, "managedclusters", name)
}

func behindPlacement(d *fleet.Decisions) error {
	return reconcile.Behind(clusterv1.GroupName, "placements", d.Key.String())
}
