package gate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reader reads gates from a cache. Every gate of a nil Reader is open.
type Reader struct {
	// Client reads from the cache of a manager.
	Client client.Reader
	// AddOns reads the dependencies of add-ons.
	AddOns addonapi.Client
	// Has reports whether an add-on has the content that it is to have, or that is not known; nil asks no more than the
	// status.
	Has func(context.Context, *addonv1beta1.ManagedClusterAddOn) (bool, error)
}

// NewReader returns a Reader. It is nil for a hub that does not serve both kinds, or where the manager may not list
// them: a cache would never be filled, and nothing would be rolled out. The latter is an error in the log, because
// nothing that people write there is in force. live reads without a cache.
func NewReader(ctx context.Context, addOns addonapi.Client, live client.Reader) (*Reader, error) {
	for _, list := range []client.ObjectList{&policies.AddOnPolicyList{}, &policies.MaintenanceWindowList{}} {
		err := live.List(ctx, list, client.Limit(1))
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			ctrl.LoggerFrom(ctx).Info("the hub has no policies of rollouts: it does not serve their kinds")
			return nil, nil // no reader is a good answer
		case apierrors.IsForbidden(err):
			ctrl.LoggerFrom(ctx).Error(err, "policies of rollouts are not in force; apply the ClusterRole of this version")
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("finding whether the hub has policies of rollouts: %w", err)
		}
	}
	return &Reader{Client: addOns.Client, AddOns: addOns}, nil
}

// From returns a Reader of the order of add-ons that reads from another client, such as the API server; nil of a nil
// one.
func (r *Reader) From(other client.Reader) *Reader {
	if r == nil {
		return nil
	}
	return &Reader{Client: other}
}

// Gate returns the gate of an add-on. A policy that cannot be decoded is an error, and the caller changes nothing. A
// window that cannot be decoded holds what waits for windows, and nothing else.
func (r *Reader) Gate(ctx context.Context, addOn string) (Gate, error) {
	if r == nil {
		return Gate{}, nil
	}
	policy, err := reconcile.Peek(ctx, r.Client, types.NamespacedName{Name: addOn}, &policies.AddOnPolicy{})
	if err != nil {
		return Gate{}, err
	}
	if policy != nil && !policy.DeletionTimestamp.IsZero() {
		policy = nil
	}
	all, err := r.windows(ctx)
	if err != nil && !decode.IsUnknown(err) {
		return Gate{}, err
	}
	g := New(addOn, policy, all)
	if err != nil {
		g.unknown = err.Error()
	}
	return r.after(ctx, g, addOn)
}

// windows returns the windows that are not being deleted: those hold nobody any more.
func (r *Reader) windows(ctx context.Context) ([]policies.MaintenanceWindow, error) {
	var all policies.MaintenanceWindowList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing MaintenanceWindows: %w", err)
	}
	going := func(w policies.MaintenanceWindow) bool { return !w.DeletionTimestamp.IsZero() }
	if slices.ContainsFunc(all.Items, going) {
		return slices.DeleteFunc(slices.Clone(all.Items), going), nil
	}
	return all.Items, nil
}

// Paused reports whether an add-on is paused; of a policy that cannot be decoded that is not known, and false.
func (r *Reader) Paused(ctx context.Context, addOn string) (bool, error) {
	if r == nil {
		return false, nil
	}
	policy, err := reconcile.Peek(ctx, r.Client, types.NamespacedName{Name: addOn}, &policies.AddOnPolicy{})
	if decode.IsUnknown(err) {
		return false, nil
	}
	return policy != nil && policy.Spec.Paused != nil, err
}

// Cluster returns what the windows of a gate know of a cluster; of one that does not exist, nothing.
func (r *Reader) Cluster(ctx context.Context, name string) (Cluster, error) {
	if r == nil {
		return Cluster{}, nil
	}
	c, err := reconcile.Peek(ctx, r.Client, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{})
	if decode.IsUnknown(err) {
		return Cluster{Unknown: true}, nil
	}
	if err == nil && c == nil {
		return Cluster{}, nil
	}
	if err != nil {
		return Cluster{}, err
	}
	return ClusterOf(c), nil
}

// ClusterOf returns what windows know of a cluster.
func ClusterOf(c *clusterv1.ManagedCluster) Cluster {
	claims := make(map[string]string, len(c.Status.ClusterClaims))
	for _, claim := range c.Status.ClusterClaims {
		claims[claim.Name] = claim.Value
	}
	return Cluster{Labels: c.Labels, Claims: claims}
}

// PlaceChanged passes clusters of which windows know something else.
func PlaceChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*clusterv1.ManagedCluster)
			is, also := e.ObjectNew.(*clusterv1.ManagedCluster)
			return ok && also && (!maps.Equal(chosen(was.Labels), chosen(is.Labels)) ||
				!slices.Equal(was.Status.ClusterClaims, is.Status.ClusterClaims))
		},
	}
}

// chosen returns the labels of a cluster without those that the hub writes of the health of its add-ons, which change
// often.
func chosen(labels map[string]string) map[string]string {
	left := maps.Clone(labels)
	maps.DeleteFunc(left, func(key, _ string) bool { return strings.HasPrefix(key, names.PrefixFeature) })
	return left
}
