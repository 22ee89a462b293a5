package addon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
	"github.com/spokelet/spokelet/internal/watch"
	"github.com/spokelet/spokelet/lease"
)

// workers is the number of add-ons that are reconciled at once.
const workers = 4

// SetupWithManager adds the reconciler to mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Hub == nil || r.Agent == nil || r.Namespace == "" || r.Cluster == "" {
		return errors.New("setting up agent.addon: Hub, Agent, Namespace and Cluster are needed")
	}
	if err := r.complete(); err != nil {
		return fmt.Errorf("setting up agent.addon: %w", err)
	}
	hub := r.Hub.GetCache()
	b := ctrl.NewControllerManagedBy(mgr).Named("agent.addon").WithOptions(reconcile.Options(workers)).
		WatchesRawSource(r.watch).
		WatchesRawSource(r.requests).
		WatchesRawSource(source.Kind(hub, r.addons.WatchedAddOn(), &handler.EnqueueRequestForObject{},
			predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetNamespace() == r.Cluster }))).
		WatchesRawSource(source.Kind(hub, client.Object(&clusterv1.ManagedCluster{}),
			handler.EnqueueRequestsFromMapFunc(r.all), r.availabilityChanged()))
	for _, side := range r.sides {
		b = b.WatchesRawSource(source.Kind(side.GetCache(), client.Object(&corev1.Secret{}),
			handler.EnqueueRequestsFromMapFunc(r.byLabels),
			predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()[names.LabelCredential] != "" })))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("setting up agent.addon: %w", err)
	}
	return nil
}

// complete sets defaults and builds the clients.
func (r *Reconciler) complete() error {
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	if r.Ahead == nil {
		r.Ahead = func() (time.Duration, bool) { return 0, false }
	}
	r.SecretName = cmp.Or(r.SecretName, names.SecretHub)
	if r.LeaseGrace == 0 {
		r.LeaseGrace = lease.AddonGrace
	}
	if err := r.completeDriver(); err != nil {
		return err
	}
	r.addons = addonapi.Client{Client: r.Hub.GetClient(), Wire: r.Wire}
	r.sides = map[side]cluster.Cluster{sideAgent: r.Agent}
	if r.Spoke != nil && r.Spoke != r.Agent {
		r.sides[sideSpoke] = r.Spoke
	}
	direct := map[side]client.WithWatch{}
	for name, side := range r.sides {
		c, err := client.NewWithWatch(side.GetConfig(), client.Options{
			HTTPClient: side.GetHTTPClient(), Scheme: side.GetScheme(), Mapper: side.GetRESTMapper(),
		})
		if err != nil {
			return fmt.Errorf("making a client: %w", err)
		}
		direct[name] = c
	}
	r.watch = newWatcher(direct, r.Cluster, r.leaseMatters, r.Clock)
	var err error
	r.requests, err = watch.NewNamed("agent.addon", r.Hub, issue.RequestKind())
	return err
}

func (r *Reconciler) completeDriver() error {
	switch r.Driver {
	case "":
		r.Driver = DriverCSR
	case DriverCSR, token.Driver:
	default:
		return fmt.Errorf("driver %q is unknown: it must be %s or %s", r.Driver, DriverCSR, token.Driver)
	}
	if r.TokenExpirationSeconds == 0 {
		r.TokenExpirationSeconds = token.DefaultExpirationSeconds
	}
	if r.TokenExpirationSeconds < token.MinExpirationSeconds {
		return fmt.Errorf("tokens for %d seconds cannot be requested: the minimum is %d",
			r.TokenExpirationSeconds, token.MinExpirationSeconds)
	}
	return nil
}

// leaseMatters reports whether a change of a lease may change the health of its add-on. The renewal of a fresh lease
// does not; the pass at its expiry reads the new one.
func (r *Reconciler) leaseMatters(before, after *coordinationv1.Lease) bool {
	now := r.Clock.Now()
	return lease.Judge(before, now, r.LeaseGrace).State != lease.Fresh ||
		lease.Judge(after, now, r.LeaseGrace).State != lease.Fresh
}

// byLabels maps a Secret to the add-on that its labels name.
func (r *Reconciler) byLabels(_ context.Context, o client.Object) []ctrl.Request {
	addon := o.GetLabels()[names.LabelAddonName]
	if addon == "" || o.GetLabels()[names.LabelClusterName] != r.Cluster {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: r.Cluster, Name: addon}}}
}

// all maps any object to all add-ons.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []ctrl.Request {
	addons, err := r.addons.ListAddOns(ctx, client.InNamespace(r.Cluster), decode.LeaveOut)
	if err != nil { // the list comes from a cache that runs, or this pass is at the end of the process
		return nil
	}
	requests := make([]ctrl.Request, 0, len(addons))
	for _, addon := range addons {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(addon)})
	}
	return requests
}

// availabilityChanged selects the event at which the cluster becomes Unknown or is Unknown no longer.
func (r *Reconciler) availabilityChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetName() == r.Cluster },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectNew.GetName() == r.Cluster && isUnknown(e.ObjectOld) != isUnknown(e.ObjectNew)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
