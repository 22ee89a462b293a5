package window

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Name is the name of the controller.
const Name = "hub.window"

// batchPeriod is how long a window waits for further changes of clusters.
const batchPeriod = 5 * time.Second

// Reconciler reports the state of MaintenanceWindows.
type Reconciler struct {
	// Client reads from the cache of the manager and writes.
	Client client.Client
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many windows are reconciled at the same time.
	Workers int
}

// facts are the inputs of a pass.
type facts struct {
	now time.Time
	// window is nil when it does not exist or is being deleted.
	window   *policies.MaintenanceWindow
	clusters []clusterv1.ManagedCluster
}

// Reconcile reports the state of one window.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f, err := r.observe(ctx, req)
	if err != nil || f.window == nil {
		return reconcile.Retry(err).Settle(f.now)
	}
	status, wake := conclude(f)
	after := f.window.DeepCopy()
	after.Status = status
	_, err = reconcile.PatchStatus(ctx, r.Client, f.window, after)
	return reconcile.FromError(client.IgnoreNotFound(err)).And(reconcile.DoneUntil(wake)).Settle(f.now)
}

// observe reads the facts about a window.
func (r *Reconciler) observe(ctx context.Context, req ctrl.Request) (facts, error) {
	f := facts{now: r.Clock.Now()}
	window, err := reconcile.Peek(ctx, r.Client, req.NamespacedName, &policies.MaintenanceWindow{})
	if err != nil || window == nil || !window.DeletionTimestamp.IsZero() {
		return f, err
	}
	f.window = window
	var clusters clusterv1.ManagedClusterList
	if err := r.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy, decode.LeaveOut); err != nil {
		return f, fmt.Errorf("listing the clusters of a window: %w", err)
	}
	f.clusters = clusters.Items
	return f, nil
}

// SetupWithManager adds the controller to the manager of the hub.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named(Name).WithOptions(reconcile.Options(r.Workers)).
		For(&policies.MaintenanceWindow{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1.ManagedCluster{}, (&gate.Reader{Client: r.Client}).Moves(batchPeriod, requests),
			builder.WithPredicates(predicate.Or(gate.PlaceChanged(), reconcile.CreatedOrDeleted()))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// requests returns requests for windows that a change of a cluster concerns.
func requests(_ context.Context, _ client.Object, windows []policies.MaintenanceWindow) []ctrl.Request {
	all := make([]ctrl.Request, 0, len(windows))
	for i := range windows {
		all = append(all, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&windows[i])})
	}
	return all
}

// conclude returns the status of a window, and when it changes by itself.
func conclude(f facts) (status policies.MaintenanceWindowStatus, wake time.Time) {
	clusters := make([]gate.Cluster, 0, len(f.clusters))
	for i := range f.clusters {
		clusters = append(clusters, gate.ClusterOf(&f.clusters[i]))
	}
	return gate.Report(f.window, clusters, f.now)
}
