package clusterset

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reconciler keeps the sets of every hub, and writes the status of all ManagedClusterSets.
type Reconciler struct {
	// Client reads from the cache of the manager and writes.
	Client client.Client
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many sets are reconciled at the same time.
	Workers int
}

// fieldManager is the field manager of the sets that the hub manager creates.
const fieldManager = "spokelet-hub"

// Reconcile keeps one set, if it is one of every hub, and updates its status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f, err := r.observe(ctx, req.Name)
	if err != nil {
		return reconcile.Retry(err).Settle(f.now)
	}
	return reconcile.FromError(client.IgnoreNotFound(r.act(ctx, f, decide(f)))).Settle(f.now)
}

// act writes what is desired. The event of a write to the set starts the pass that reports its clusters.
func (r *Reconciler) act(ctx context.Context, f facts, desired *clusterv1beta2.ManagedClusterSet) error {
	switch {
	case desired == nil:
		return nil
	case f.set == nil:
		return r.create(ctx, desired)
	}
	if changed, err := reconcile.PatchMain(ctx, r.Client, f.set, desired.DeepCopy()); changed || err != nil {
		return err
	}
	_, err := reconcile.PatchStatus(ctx, r.Client, f.set, desired)
	return err
}

// create creates a set by server-side apply, because a rule of a role cannot name the object of a plain creation.
func (r *Reconciler) create(ctx context.Context, set *clusterv1beta2.ManagedClusterSet) error {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&set.Spec)
	if err != nil {
		return fmt.Errorf("encoding ManagedClusterSet %s: %w", set.Name, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(clusterv1beta2.GroupVersion.String())
	u.SetKind("ManagedClusterSet")
	u.SetName(set.Name)
	applied := client.ApplyConfigurationFromUnstructured(u)
	if err := r.Client.Apply(ctx, applied, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("creating %s: %w", reconcile.Describe(u), err)
	}
	log.FromContext(ctx).Info("created", "object", reconcile.Describe(u))
	return nil
}

// facts holds what is known about one set.
type facts struct {
	now  time.Time
	name string
	// set is nil when it does not exist.
	set *clusterv1beta2.ManagedClusterSet
	// clusters is the number of its clusters.
	clusters int
	// invalid says what is wrong with the selector of the set; nil means nothing.
	invalid error
}

// observe reads a set and counts its clusters.
func (r *Reconciler) observe(ctx context.Context, name string) (facts, error) {
	f := facts{now: r.Clock.Now(), name: name}
	set, err := reconcile.Get(ctx, r.Client, types.NamespacedName{Name: name}, &clusterv1beta2.ManagedClusterSet{})
	if err != nil || set == nil {
		return f, err
	}
	f.set = set
	var selector labels.Selector
	if selector, f.invalid = clustersets.Selector(name, set); f.invalid == nil {
		f.clusters, err = r.count(ctx, name, selector)
	}
	return f, err
}

// count returns how many clusters a set has.
func (r *Reconciler) count(ctx context.Context, name string, selector labels.Selector) (int, error) {
	var list clusterv1.ManagedClusterList
	by := client.MatchingLabelsSelector{Selector: selector}
	if err := r.Client.List(ctx, &list, by, client.UnsafeDisableDeepCopy, decode.Metadata); err != nil {
		return 0, fmt.Errorf("listing the clusters of ManagedClusterSet %s: %w", name, err)
	}
	return len(list.Items), nil
}
