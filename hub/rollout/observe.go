package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
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

// fleet are the add-ons of one ClusterManagementAddOn as they were observed last, so that a pass converts only those
// that changed since.
type fleet struct {
	members map[string]*member
	// versions are the resource versions of the members.
	versions map[string]string
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
		configs = append(configs, m.addOn.Spec.Configs...)
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
	f.admitted = maps.Clone(r.admissions[name])
	return f, nil
}

// served returns those of the selected clusters without an add-on that will get it.
func (r *Reconciler) served(ctx context.Context, f facts) (map[string]bool, error) {
	served := map[string]bool{}
	for _, placement := range f.placements {
		for name := range placement.clusters {
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

// members lists the add-ons of a ClusterManagementAddOn by cluster.
func (r *Reconciler) members(ctx context.Context, name string) (map[string]*member, error) {
	objects, err := r.AddOns.ListWatched(ctx, client.MatchingFields{addonapi.IndexName: name})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	known := r.fleets[name]
	r.mu.Unlock()
	next := &fleet{
		members: make(map[string]*member, len(objects)), versions: make(map[string]string, len(objects)),
	}
	for _, object := range objects {
		cluster, version := object.GetNamespace(), object.GetResourceVersion()
		next.versions[cluster] = version
		if known != nil && known.versions[cluster] == version {
			next.members[cluster] = known.members[cluster]
			continue
		}
		addOn, err := addonapi.AddOn(object)
		if err != nil {
			return nil, err
		}
		next.members[cluster] = newMember(addOn)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fleets == nil {
		r.fleets = map[string]*fleet{}
	}
	if len(objects) == 0 {
		delete(r.fleets, name)
		return next.members, nil
	}
	r.fleets[name] = next
	return next.members, nil
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
	observed := placementFacts{exists: found != nil, clusters: map[string]group{}}
	if found != nil {
		observed.conditions = found.Status.Conditions
		observed.groupSize = found.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup
	}
	for i := range decisions.Items {
		of := groupOf(&decisions.Items[i])
		for _, decision := range decisions.Items[i].Status.Decisions {
			observed.clusters[decision.ClusterName] = of
		}
	}
	return observed, nil
}

// groupOf returns the decision group of a PlacementDecision.
func groupOf(decision *clusterv1beta1.PlacementDecision) group {
	index, err := strconv.Atoi(decision.Labels[clusterv1beta1.DecisionGroupIndexLabel])
	if err != nil || index < 0 {
		index = -1
	}
	return group{index: index, name: decision.Labels[clusterv1beta1.DecisionGroupNameLabel]}
}
