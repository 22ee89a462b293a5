package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observeAddOn reads the facts about one add-on. It returns nil when the add-on or its ClusterManagementAddOn does not
// exist, when the add-on is managed by others, and on an error.
func (r *Reconciler) observeAddOn(ctx context.Context, key types.NamespacedName, now time.Time) (*addOnFacts, error) {
	addon, err := r.AddOns.GetAddOn(ctx, key)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	cma, err := r.AddOns.GetClusterManagementAddOn(ctx, key.Name)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !addonapi.Managed(cma) {
		return nil, nil
	}
	facts := &addOnFacts{now: now, addon: addon, cma: cma}
	if facts.placement, facts.missingPlacements, err = r.owner(ctx, cma, addon.Namespace); err != nil {
		return nil, err
	}
	facts.found = configStates{}
	for _, wanted := range wantedConfigs(cma, facts.placement, addon.Spec.Configs) {
		if err := r.find(ctx, wanted.AddOnConfig, facts.found); err != nil {
			return nil, err
		}
	}
	facts.works, facts.worksErr = r.works(ctx, addon)
	return facts, nil
}

// owner returns the index of the last placement that selects a cluster. If none does, it returns -1 and the listed
// placements that do not exist.
func (r *Reconciler) owner(
	ctx context.Context, cma *addonv1beta1.ClusterManagementAddOn, cluster string,
) (int, []string, error) {
	placements := placementsOf(cma)
	if len(placements) == 0 {
		return -1, nil, nil
	}
	var decisions clusterv1beta1.PlacementDecisionList
	err := r.Client.List(ctx, &decisions, client.MatchingFields{addonapi.IndexCluster: cluster},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return -1, nil, fmt.Errorf("listing the placement decisions for cluster %s: %w", cluster, err)
	}
	selecting := map[addonv1beta1.PlacementRef]bool{}
	for i := range decisions.Items {
		selecting[placementOf(&decisions.Items[i])] = true
	}
	for index := len(placements) - 1; index >= 0; index-- {
		if selecting[placements[index].PlacementRef] {
			return index, nil, nil
		}
	}
	var missingPlacements []string
	for _, placement := range placements {
		found, err := r.placement(ctx, placement.PlacementRef)
		if err != nil {
			return -1, nil, err
		}
		if found == nil {
			missingPlacements = append(missingPlacements, fmt.Sprintf("placement %s/%s", placement.Namespace, placement.Name))
		}
	}
	return -1, missingPlacements, nil
}

// placement reads a Placement; nil when it does not exist. It belongs to the cache.
func (r *Reconciler) placement(
	ctx context.Context, ref addonv1beta1.PlacementRef,
) (*clusterv1beta1.Placement, error) {
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	return reconcile.Get(ctx, r.Client, key, &clusterv1beta1.Placement{}, client.UnsafeDisableDeepCopy)
}

// works lists the works of an add-on except its pre-delete hooks: those in the namespace of its cluster and, for a
// hosted add-on, those in the namespace of the hosting cluster.
func (r *Reconciler) works(
	ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn,
) ([]*workv1.ManifestWork, error) {
	var works []*workv1.ManifestWork
	collect := func(namespace string, wanted func(*workv1.ManifestWork) bool) error {
		var list workv1.ManifestWorkList
		err := r.Client.List(ctx, &list, client.InNamespace(namespace),
			client.MatchingLabels{names.LabelAddonName: addon.Name}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("listing the works of add-on %s in namespace %s: %w", addon.Name, namespace, err)
		}
		for i := range list.Items {
			if work := &list.Items[i]; wanted(work) && !isHook(work, addon.Name) {
				works = append(works, work)
			}
		}
		return nil
	}
	err := collect(addon.Namespace, func(work *workv1.ManifestWork) bool {
		_, elsewhere := work.Labels[names.LabelAddonNamespace]
		return !elsewhere
	})
	if host := addon.Annotations[names.AnnotationHostingCluster]; host != "" && err == nil {
		err = collect(host, func(work *workv1.ManifestWork) bool {
			return work.Labels[names.LabelAddonNamespace] == addon.Namespace
		})
	}
	return works, err
}

// observePlan reads the facts about a ClusterManagementAddOn; nil as for observeAddOn.
func (r *Reconciler) observePlan(ctx context.Context, name string, now time.Time) (*planFacts, error) {
	cma, err := r.AddOns.GetClusterManagementAddOn(ctx, name)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	facts := &planFacts{now: now, cma: cma, found: configStates{}}
	configs := slices.Clone(cma.Spec.DefaultConfigs)
	for _, placement := range placementsOf(cma) {
		configs = append(configs, placement.Configs...)
		observed, err := r.observePlacement(ctx, placement.PlacementRef)
		if err != nil {
			return nil, err
		}
		facts.placements = append(facts.placements, observed)
	}
	if len(facts.placements) > 0 {
		if facts.addons, err = r.AddOns.ListAddOns(ctx, client.MatchingFields{addonapi.IndexName: name}); err != nil {
			return nil, err
		}
	}
	for _, addon := range facts.addons {
		configs = append(configs, addon.Spec.Configs...)
	}
	for _, config := range configs {
		if _, known := facts.found[config]; known {
			continue
		}
		if err := r.find(ctx, config, facts.found); err != nil {
			return nil, err
		}
	}
	return facts, nil
}

func (r *Reconciler) observePlacement(ctx context.Context, ref addonv1beta1.PlacementRef) (placementFacts, error) {
	found, err := r.placement(ctx, ref)
	if err != nil {
		return placementFacts{}, err
	}
	var decisions clusterv1beta1.PlacementDecisionList
	err = r.Client.List(ctx, &decisions, client.InNamespace(ref.Namespace),
		client.MatchingLabels{names.LabelPlacement: ref.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return placementFacts{}, fmt.Errorf("listing the decisions of placement %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	facts := placementFacts{exists: found != nil, clusters: map[string]bool{}}
	if found != nil {
		facts.conditions = found.Status.Conditions
	}
	for i := range decisions.Items {
		for _, decision := range decisions.Items[i].Status.Decisions {
			facts.clusters[decision.ClusterName] = true
		}
	}
	return facts, nil
}

// find adds the state of one config to found.
func (r *Reconciler) find(ctx context.Context, config addonv1beta1.AddOnConfig, found configStates) error {
	object, ours := r.AddOns.Configs.New(config.ConfigGroupResource)
	if !ours {
		found[config] = configState{foreign: true}
		return nil
	}
	key := types.NamespacedName{Namespace: config.Namespace, Name: config.Name}
	err := r.configs.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		found[config] = configState{missing: true}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", describe(config), err)
	}
	hash, err := r.hashes.of(config, object)
	if err != nil {
		return fmt.Errorf("hashing %s: %w", describe(config), err)
	}
	found[config] = configState{hash: hash, generation: object.GetGeneration()}
	return nil
}

// placementOf returns the placement of a PlacementDecision.
func placementOf(decision *clusterv1beta1.PlacementDecision) addonv1beta1.PlacementRef {
	return addonv1beta1.PlacementRef{Namespace: decision.Namespace, Name: decision.Labels[names.LabelPlacement]}
}

// placementKey returns the index key of the placement of a PlacementDecision.
func placementKey(decision *clusterv1beta1.PlacementDecision) string {
	ref := placementOf(decision)
	return addonapi.PlacementKey(ref.Namespace, ref.Name)
}
