package rollout

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// selection are the clusters that the PlacementDecisions of a placement select. It is kept from pass to pass and never
// changed.
type selection struct {
	// version identifies the PlacementDecisions.
	version string
	groups  map[string]group
	// names are the clusters in order.
	names []string
}

// observe reads the facts about a ClusterManagementAddOn; without one, facts has the members alone.
func (r *Reconciler) observe(ctx context.Context, name string, now time.Time) (facts, error) {
	f := facts{now: now}
	cma, err := r.AddOns.GetClusterManagementAddOn(ctx, name)
	if client.IgnoreNotFound(err) != nil {
		return f, err
	}
	if f.members, err = r.members(ctx, name); err != nil {
		return f, err
	}
	if cma == nil {
		r.Store.Want(name, nil)
		return f, nil
	}
	f.cma = cma
	configs := slices.Clone(cma.Spec.DefaultConfigs)
	for _, placement := range addonconfig.PlacementsOf(cma) {
		configs = append(configs, placement.Configs...)
		observed, err := r.observePlacement(ctx, placement.PlacementRef)
		if err != nil {
			return f, err
		}
		f.placements = append(f.placements, observed)
	}
	for _, m := range f.members {
		configs = append(configs, m.configs...)
	}
	if f.served, err = r.served(ctx, f); err != nil {
		return f, err
	}
	configs = slices.DeleteFunc(configs, func(c addonv1beta1.AddOnConfig) bool { return !addonapi.HasDefault(c) })
	r.Store.Want(name, configs)
	if f.states, err = r.Store.States(ctx, configs...); err != nil {
		return f, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f.admitted = r.admissions[name] // It is replaced, and never changed.
	return f, nil
}

// served returns those of the selected clusters without an add-on that will get it.
func (r *Reconciler) served(ctx context.Context, f facts) (map[string]bool, error) {
	served := map[string]bool{}
	for _, placement := range f.placements {
		for _, name := range placement.names {
			if m := f.members[name]; m != nil && !m.deleting {
				continue
			}
			cluster, err := reconcile.Get(ctx, r.Client, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{},
				client.UnsafeDisableDeepCopy)
			if err != nil {
				return nil, err
			}
			served[name] = cluster != nil && cluster.DeletionTimestamp.IsZero() && cluster.Spec.HubAcceptsClient
		}
	}
	return served, nil
}

// members returns the add-ons of a ClusterManagementAddOn by cluster. Only those that changed since the last pass are
// read and converted.
func (r *Reconciler) members(ctx context.Context, name string) (map[string]*member, error) {
	known, changed := r.takeChanged(name)
	if known == nil {
		return r.allMembers(ctx, name)
	}
	var like *member
	for cluster := range changed {
		object, err := r.AddOns.PeekAddOn(ctx, types.NamespacedName{Namespace: cluster, Name: name})
		if err == nil && object != nil {
			var addOn *addonv1beta1.ManagedClusterAddOn
			if addOn, err = addonapi.AddOn(object); err == nil {
				like = newMember(addOn, cmp.Or(like, known[cluster]))
				known[cluster] = like
				continue
			}
		}
		if err != nil {
			r.keepMembers(name, nil) // The next pass reads all.
			return nil, err
		}
		delete(known, cluster)
	}
	r.keepMembers(name, known)
	return known, nil
}

// allMembers lists the add-ons of a ClusterManagementAddOn by cluster.
func (r *Reconciler) allMembers(ctx context.Context, name string) (map[string]*member, error) {
	objects, err := r.AddOns.ListWatched(ctx, client.MatchingFields{addonapi.IndexName: name})
	if err != nil {
		return nil, err
	}
	members := make(map[string]*member, len(objects))
	var like *member
	for _, object := range objects {
		addOn, err := addonapi.AddOn(object)
		if err != nil {
			return nil, err
		}
		like = newMember(addOn, like)
		members[object.GetNamespace()] = like
	}
	r.keepMembers(name, members)
	return members, nil
}

// takeChanged returns the add-ons that an earlier pass read, nil for none, and the clusters on which they changed
// since.
func (r *Reconciler) takeChanged(name string) (map[string]*member, map[string]struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := r.changed[name]
	delete(r.changed, name)
	return r.fleets[name], changed
}

// keepMembers keeps the add-ons for the next pass; none are forgotten.
func (r *Reconciler) keepMembers(name string, members map[string]*member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(members) == 0 {
		delete(r.fleets, name)
		return
	}
	if r.fleets == nil {
		r.fleets = map[string]map[string]*member{}
	}
	r.fleets[name] = members
}

// note remembers that an add-on changed on a cluster.
func (r *Reconciler) note(addOn client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := addOn.GetName()
	if r.changed == nil {
		r.changed = map[string]map[string]struct{}{}
	}
	if r.changed[name] == nil {
		r.changed[name] = map[string]struct{}{}
	}
	r.changed[name][addOn.GetNamespace()] = struct{}{}
}

func (r *Reconciler) observePlacement(ctx context.Context, ref addonv1beta1.PlacementRef) (placementFacts, error) {
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	found, err := reconcile.Get(ctx, r.Client, key, &clusterv1beta1.Placement{}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return placementFacts{}, err
	}
	var decisions clusterv1beta1.PlacementDecisionList
	err = r.Client.List(ctx, &decisions, client.InNamespace(ref.Namespace),
		client.MatchingLabels{names.LabelPlacement: ref.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return placementFacts{}, fmt.Errorf("listing the decisions of placement %s: %w", key, err)
	}
	observed := placementFacts{exists: found != nil, selection: r.selection(key, decisions.Items)}
	if found != nil {
		observed.conditions = found.Status.Conditions
		observed.groupSize = found.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup
	}
	return observed, nil
}

// selection returns the clusters that PlacementDecisions select.
func (r *Reconciler) selection(key types.NamespacedName, decisions []clusterv1beta1.PlacementDecision) selection {
	slices.SortFunc(decisions, func(a, b clusterv1beta1.PlacementDecision) int { return strings.Compare(a.Name, b.Name) })
	var version strings.Builder
	for i := range decisions {
		fmt.Fprintf(&version, "%s@%s,", decisions[i].Name, decisions[i].ResourceVersion)
	}
	if known, found := r.selections[key]; found && known.version == version.String() {
		return known
	}
	s := selection{version: version.String(), groups: map[string]group{}}
	for i := range decisions {
		of := groupOf(&decisions[i])
		for _, decision := range decisions[i].Status.Decisions {
			s.groups[decision.ClusterName] = of
		}
	}
	s.names = slices.Sorted(maps.Keys(s.groups))
	if r.selections == nil {
		r.selections = map[types.NamespacedName]selection{}
	}
	if r.selections[key] = s; len(decisions) == 0 {
		delete(r.selections, key)
	}
	return s
}

// groupOf returns the decision group of a PlacementDecision.
func groupOf(decision *clusterv1beta1.PlacementDecision) group {
	index, err := strconv.Atoi(decision.Labels[clusterv1beta1.DecisionGroupIndexLabel])
	if err != nil || index < 0 {
		index = -1
	}
	return group{index: index, name: decision.Labels[clusterv1beta1.DecisionGroupNameLabel]}
}
