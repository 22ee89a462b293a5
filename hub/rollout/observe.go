package rollout

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observe reads the facts about a ClusterManagementAddOn; without one, facts has the members alone.
func (r *Reconciler) observe(ctx context.Context, name string, now time.Time) (facts, error) {
	f := facts{now: now}
	cma, err := r.AddOns.GetClusterManagementAddOn(ctx, name)
	if client.IgnoreNotFound(err) != nil {
		return f, err
	}
	if f.members, err = r.members(ctx, name, now); err != nil {
		return f, err
	}
	if cma == nil {
		r.Store.Want(name)
		return f, nil
	}
	f.cma = cma
	configs := slices.Clone(cma.Spec.DefaultConfigs)
	for _, placement := range addonconfig.PlacementsOf(cma) {
		configs = append(configs, placement.Configs...)
		decisions, err := r.Placements.Decisions(ctx, types.NamespacedName(placement.PlacementRef))
		if err != nil {
			return f, err
		}
		f.placements = append(f.placements, decisions)
	}
	noDefault := func(c addonv1beta1.AddOnConfig) bool { return !addonapi.HasDefault(c) }
	named := []addonconfig.Named{{Configs: slices.DeleteFunc(slices.Clone(configs), noDefault)}}
	for _, m := range f.members {
		configs = append(configs, m.configs...)
		if supported := m.supportedConfigs(); len(supported) > 0 {
			named = append(named, addonconfig.Named{Cluster: m.cluster, Configs: supported})
		}
	}
	slices.SortFunc(named, func(a, b addonconfig.Named) int { return strings.Compare(a.Cluster, b.Cluster) })
	if f.served, err = r.served(ctx, f); err != nil {
		return f, err
	}
	configs = slices.DeleteFunc(configs, noDefault)
	r.Store.Want(name, named...)
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
		for _, name := range placement.Names {
			if m := f.members[name]; m != nil && !m.deleting {
				continue
			}
			key := types.NamespacedName{Name: name}
			cluster, err := reconcile.Get(ctx, r.Client, key, &clusterv1.ManagedCluster{}, client.UnsafeDisableDeepCopy)
			if decode.IsUnknown(err) {
				continue // Nothing is installed there meanwhile.
			}
			if err != nil {
				return nil, err
			}
			namespace, err := reconcile.Get(ctx, r.Client, key, reconcile.Namespace(), client.UnsafeDisableDeepCopy)
			if err != nil {
				return nil, err
			}
			served[name] = serves(cluster, namespace)
		}
	}
	return served, nil
}

// serves reports whether add-ons are installed on a cluster now or soon. A namespace that belongs to others is for a
// person to change.
func serves(cluster *clusterv1.ManagedCluster, namespace *metav1.PartialObjectMetadata) bool {
	if cluster == nil || !cluster.DeletionTimestamp.IsZero() || !cluster.Spec.HubAcceptsClient {
		return false
	}
	return namespace == nil || names.CheckNamespace(namespace, cluster.Name) == nil
}

// members returns the add-ons of a ClusterManagementAddOn by cluster. Only those that changed since the last pass are
// read and converted.
func (r *Reconciler) members(ctx context.Context, name string, now time.Time) (map[string]*member, error) {
	known, changed := r.takeChanged(name)
	if known == nil {
		return r.allMembers(ctx, name, now)
	}
	var like *member
	for cluster := range changed {
		object, err := r.AddOns.PeekAddOn(ctx, types.NamespacedName{Namespace: cluster, Name: name})
		if err == nil && object != nil {
			var addOn *addonv1beta1.ManagedClusterAddOn
			if addOn, err = addonapi.AddOn(object); err == nil {
				like = newMember(addOn, cmp.Or(like, known[cluster])).saw(known[cluster], now)
				known[cluster] = like
				continue
			}
		}
		if decode.IsUnknown(err) {
			continue // It is what it was; that is unknown after a start.
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
func (r *Reconciler) allMembers(ctx context.Context, name string, now time.Time) (map[string]*member, error) {
	objects, err := r.AddOns.ListWatched(ctx, client.MatchingFields{addonapi.IndexName: name}, decode.LeaveOut)
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
		like = newMember(addOn, like).saw(nil, now)
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
