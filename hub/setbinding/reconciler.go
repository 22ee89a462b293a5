package setbinding

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Name is the name of the controller.
const Name = "hub.setbinding"

// Reconciler reports in each ManagedClusterSetBinding whether its set is bound.
type Reconciler struct {
	// Client reads from the cache of the manager and writes.
	Client client.Client
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many bindings are reconciled at the same time.
	Workers int
}

// facts are the inputs of a pass.
type facts struct {
	now time.Time
	// binding is nil when it does not exist or is being deleted.
	binding *clusterv1beta2.ManagedClusterSetBinding
	// exists reports whether its set does.
	exists bool
}

// Reconcile reports whether the set of one binding is bound.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f, err := r.observe(ctx, req.NamespacedName)
	if err != nil || f.binding == nil {
		return reconcile.Retry(err).Settle(f.now)
	}
	after := f.binding.DeepCopy()
	conclude(f, &after.Status)
	_, err = reconcile.PatchStatus(ctx, r.Client, f.binding, after)
	return reconcile.FromError(client.IgnoreNotFound(err)).Settle(f.now)
}

// observe reads the facts about a binding.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (facts, error) {
	f := facts{now: r.Clock.Now()}
	binding, err := reconcile.Get(ctx, r.Client, key, &clusterv1beta2.ManagedClusterSetBinding{})
	if err != nil || binding == nil || !binding.DeletionTimestamp.IsZero() {
		return f, err
	}
	f.binding = binding
	set, err := reconcile.Peek(ctx, r.Client, types.NamespacedName{Name: binding.Spec.ClusterSet},
		&clusterv1beta2.ManagedClusterSet{})
	f.exists = set != nil
	return f, err
}

// SetupWithManager adds the controller to the manager of the hub.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	comesOrGoes := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	err := ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.Options(r.Workers)).
		For(&clusterv1beta2.ManagedClusterSetBinding{}).
		Watches(&clusterv1beta2.ManagedClusterSet{}, handler.EnqueueRequestsFromMapFunc(r.ofSet),
			builder.WithPredicates(comesOrGoes)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// ofSet maps a set to the bindings that name it.
func (r *Reconciler) ofSet(ctx context.Context, set client.Object) []ctrl.Request {
	var list clusterv1beta2.ManagedClusterSetBindingList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy, decode.LeaveOut); err != nil {
		log.FromContext(ctx).Error(err, "listing ManagedClusterSetBindings")
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if binding := &list.Items[i]; binding.Spec.ClusterSet == set.GetName() {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(binding)})
		}
	}
	return requests
}
