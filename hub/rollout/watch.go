package rollout

import (
	"context"
	"fmt"

	"github.com/spokelet/spokelet/internal/addonapi"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Names of the controllers.
const (
	controllerPlan  = "hub.rollout"
	controllerAddOn = "hub.rollout.addon"
)

// SetupWithManager adds both controllers to the manager of the hub.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.configs = mgr.GetCache()
	if err := r.setupAddOn(mgr); err != nil {
		return fmt.Errorf("setting up %s: %w", controllerAddOn, err)
	}
	if err := r.setupPlan(mgr); err != nil {
		return fmt.Errorf("setting up %s: %w", controllerPlan, err)
	}
	return nil
}

func (r *Reconciler) setupAddOn(mgr ctrl.Manager) error {
	controller := ctrl.NewControllerManagedBy(mgr).Named(controllerAddOn).WithOptions(reconcile.Options(r.Workers)).
		For(r.AddOns.WatchedAddOn(), builder.WithPredicates(present())).
		Watches(r.AddOns.WatchedClusterManagementAddOn(), handler.EnqueueRequestsFromMapFunc(r.addOnsOfCMA),
			builder.WithPredicates(instructionsChanged())).
		Watches(&clusterv1beta1.Placement{}, handler.EnqueueRequestsFromMapFunc(r.addOnsOfPlacement),
			builder.WithPredicates(reconcile.CreatedOrDeleted())).
		Watches(&clusterv1beta1.PlacementDecision{}, r.addOnsOfDecision()).
		Watches(&workv1.ManifestWork{}, handler.EnqueueRequestsFromMapFunc(addOnOfWork),
			builder.WithPredicates(workProgressed()))
	for _, config := range r.watchedConfigs() {
		controller = controller.Watches(config, handler.EnqueueRequestsFromMapFunc(r.addOnsOfConfig),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	return controller.Complete(ctrlreconcile.Func(r.reconcileAddOn))
}

func (r *Reconciler) setupPlan(mgr ctrl.Manager) error {
	controller := ctrl.NewControllerManagedBy(mgr).Named(controllerPlan).WithOptions(reconcile.Options(1)).
		Watches(r.AddOns.WatchedClusterManagementAddOn(), planOfCMA()).
		Watches(r.AddOns.WatchedAddOn(), batched(planOfAddOn)).
		Watches(&clusterv1beta1.PlacementDecision{}, batched(r.plansOfDecision)).
		Watches(&clusterv1beta1.Placement{}, batched(r.plansOfPlacement),
			builder.WithPredicates(selectionChanged()))
	for _, config := range r.watchedConfigs() {
		controller = controller.Watches(config, handler.EnqueueRequestsFromMapFunc(r.plansOfConfig),
			builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	return controller.Complete(ctrlreconcile.Func(r.reconcilePlan))
}

// watchedConfigs returns the kinds of config that the hub reads.
func (r *Reconciler) watchedConfigs() []client.Object {
	var kinds []client.Object
	for _, resource := range confighash.Resources() {
		if kind, known := r.AddOns.Configs.New(resource); known {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// configOf returns the index key of the config of an event.
func configOf(o client.Object) string {
	object, ok := o.(*unstructured.Unstructured)
	if !ok {
		return ""
	}
	referent := addonv1beta1.ConfigReferent{Namespace: object.GetNamespace(), Name: object.GetName()}
	for _, resource := range confighash.Resources() {
		if kind, known := confighash.Kind(resource); known && kind.GroupKind() == object.GroupVersionKind().GroupKind() {
			return confighash.Key(resource, referent)
		}
	}
	return ""
}

// indexConfig finds add-ons and ClusterManagementAddOns by the configs that their spec names.
const indexConfig = "rollout.config"

// Index adds the field indexes of this package to a cache; it must be called once, before the cache starts. The indexes
// of addonapi.Client are needed, too.
func (r *Reconciler) Index(ctx context.Context, indexer client.FieldIndexer) error {
	return reconcile.AddIndexes(ctx, indexer,
		reconcile.FieldIndex{Object: r.AddOns.WatchedAddOn(), Field: indexConfig, Keys: addOnConfigKeys},
		reconcile.FieldIndex{Object: r.AddOns.WatchedClusterManagementAddOn(), Field: indexConfig, Keys: cmaConfigKeys},
	)
}

func addOnConfigKeys(o client.Object) []string {
	addon, err := addonapi.AddOn(o)
	if err != nil {
		return nil
	}
	return configKeys(addon.Spec.Configs)
}

func cmaConfigKeys(o client.Object) []string {
	cma, err := addonapi.ClusterManagementAddOn(o)
	if err != nil {
		return nil
	}
	keys := configKeys(cma.Spec.DefaultConfigs)
	for _, placement := range cma.Spec.InstallStrategy.Placements {
		keys = append(keys, configKeys(placement.Configs)...)
	}
	return keys
}

func configKeys(configs []addonv1beta1.AddOnConfig) []string {
	keys := make([]string, 0, len(configs))
	for _, config := range configs {
		keys = append(keys, confighash.Key(config.ConfigGroupResource, config.ConfigReferent))
	}
	return keys
}
