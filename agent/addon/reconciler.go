package addon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
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

	"github.com/spokelet/spokelet/csr"
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

// Reconciler gives the add-ons of a cluster their credentials and reports their health to the hub.
type Reconciler struct {
	// Hub is the hub, with the cluster's own credential. Its cache must hold the ManagedClusterAddOns in the namespace
	// of this cluster, and its ManagedCluster.
	Hub cluster.Cluster
	// Wire is the version of the add-on API that the hub serves, from addonapi.Detect.
	Wire addonapi.Wire
	// Agent is the cluster where the agent and hosted add-ons run. Its cache must hold the Secrets of Namespace and those
	// that SecretSelector selects in all other namespaces.
	Agent cluster.Cluster
	// Spoke is the managed cluster; nil means that it is Agent. Its cache must hold the Secrets that SecretSelector
	// selects.
	Spoke cluster.Cluster
	// HostedNamespaces are the namespaces of Agent in which hosted add-ons are served where Spoke is another cluster;
	// empty means all.
	HostedNamespaces []string
	// Namespace is the agent's namespace.
	Namespace string
	// SecretName is the Secret in Namespace with the agent's own credential; empty means names.SecretHub.
	SecretName string
	// Reserved are names of Secrets with other credentials of the agent: no add-on gets a Secret of such a name.
	Reserved []string
	// Cluster is the name of the managed cluster.
	Cluster string
	// User is the user name of the agent on the hub: requests of other users do not count against its limit.
	User string
	// Server is the hub that credentials are for.
	Server csr.HubServer
	// Driver is the driver of kubeClient registrations: DriverCSR or token.Driver; empty means DriverCSR. Registrations
	// with a custom signer get certificates with both.
	Driver string
	// ExpirationSeconds is the requested lifetime of certificates; nil leaves it to the signers.
	ExpirationSeconds *int32
	// TokenExpirationSeconds is the requested lifetime of tokens; zero means token.DefaultExpirationSeconds, and less than
	// token.MinExpirationSeconds is an error.
	TokenExpirationSeconds int64
	// LeaseGrace is the time without a renewal after which an add-on becomes unavailable; zero means lease.AddonGrace.
	LeaseGrace time.Duration
	// Clock is the clock of the agent; nil means the real clock.
	Clock clock.PassiveClock
	// Ahead returns the time by which Clock is ahead of the clock of the hub, and whether that is known; nil means that it
	// is not. Credentials are judged by the clock of the hub, leases by Clock.
	Ahead func() (time.Duration, bool)

	addons addonapi.Client
	sides  map[side]cluster.Cluster
	watch  *watcher
	// requests watches the request objects that wait for their certificates.
	requests *watch.Named
	// unstored has the tokens that could not be stored, by unstoredKey.
	unstored    sync.Map
	inspections inspections
	// reads has the objects of namespaces for inspections.
	reads namespaceReads
	// workloads has the last workloadInspection of each add-on whose workloads are not ready, by name. It is a cache:
	// without it there is one more inspection.
	workloads sync.Map
}

// SecretSelector selects the Secrets that a Reconciler for the cluster creates, and no others.
func SecretSelector(cluster string) labels.Selector {
	marked, err := labels.NewRequirement(names.LabelCredential, selection.Exists, nil)
	if err != nil { // only for a malformed label, and this one is a constant
		return labels.Nothing()
	}
	return labels.SelectorFromSet(labels.Set{names.LabelClusterName: cluster}).Add(*marked)
}

// Reconcile does one pass for one add-on.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	facts, err := r.observe(ctx, req.Name)
	if err != nil {
		return reconcile.FromError(err).Settle(facts.now)
	}
	r.observeSnapshot(ctx, &facts)
	r.observeWorkloads(ctx, &facts)
	plan := decide(facts)
	results := r.serve(ctx, facts, plan)
	removeErr := r.remove(ctx, facts, plan, results)
	r.watch.want(req.Name, withWaited(plan, results)...)
	r.requests.Await(req, awaited(results)...)
	publishErr := r.publish(ctx, facts, plan, results)
	outcome := outcomeOf(ctx, plan, results, removeErr, publishErr)
	if outcome.Class() != reconcile.ClassStalled { // A person has to act there, and an event tells that.
		outcome = outcome.And(facts.lookAtClock(plan))
	}
	return outcome.Settle(facts.now)
}

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
	r.requests, err = watch.NewNamed("agent.addon", r.Hub, csr.RequestKind())
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

// isUnknown reports whether the hub reports the cluster as Unknown.
func isUnknown(o client.Object) bool {
	c, ok := o.(*clusterv1.ManagedCluster)
	if !ok {
		return false
	}
	available := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	return available != nil && available.Status == "Unknown"
}
