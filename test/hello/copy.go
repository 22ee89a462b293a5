package main

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// copyLabel, with the value true, marks an original on the hub.
	copyLabel = "hello.spokelet.io/copy"
	// copiedLabel, with the value true, marks a copy on the managed cluster.
	copiedLabel = "hello.spokelet.io/copied"
)

// copier keeps the copies as their originals are.
type copier struct {
	hub, spoke cluster.Cluster
	// cluster is the namespace of the originals on the hub, namespace that of the copies.
	cluster, namespace string
	// owners own the copies.
	owners []metav1.OwnerReference
}

// setup asks for a pass, by name, for each original and each copy that changes.
func (c *copier) setup(mgr ctrl.Manager) error {
	byName := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, m *corev1.ConfigMap) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: c.namespace, Name: m.Name}}}
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("hello").
		WatchesRawSource(source.Kind(c.hub.GetCache(), &corev1.ConfigMap{}, byName)).
		WatchesRawSource(source.Kind(c.spoke.GetCache(), &corev1.ConfigMap{}, byName)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("building the controller: %w", err)
	}
	return nil
}

// healthy reports whether the originals can be followed at all.
func (c *copier) healthy(ctx context.Context) error {
	if !c.hub.GetCache().WaitForCacheSync(ctx) {
		return errNotSynced
	}
	return nil
}

// Reconcile makes one copy as its original is.
func (c *copier) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	original, err := read(ctx, c.hub.GetClient(), types.NamespacedName{Namespace: c.cluster, Name: req.Name})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the original: %w", err)
	}
	copied, err := read(ctx, c.spoke.GetClient(), req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the copy: %w", err)
	}
	step, object := decide(original, copied, c.namespace, c.owners)
	switch step {
	case nothing:
		return ctrl.Result{}, nil
	case create:
		err = c.spoke.GetClient().Create(ctx, object)
	case update:
		err = c.spoke.GetClient().Update(ctx, object)
	case remove:
		err = client.IgnoreNotFound(c.spoke.GetClient().Delete(ctx, object))
	}
	if apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, fmt.Errorf("ConfigMap %s exists and is not a copy, so it is left alone: rename or label the "+
			"original on the hub differently: %w", req.NamespacedName, err)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("making ConfigMap %s as its original is: %w", req.NamespacedName, err)
	}
	log.FromContext(ctx).Info("copied", "step", string(step))
	return ctrl.Result{}, nil
}

// read returns nil for a ConfigMap that does not exist.
func read(ctx context.Context, r client.Reader, key types.NamespacedName) (*corev1.ConfigMap, error) {
	var found corev1.ConfigMap
	if err := r.Get(ctx, key, &found); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &found, nil
}

// step says what has to be done to a copy.
type step string

const (
	nothing step = "nothing"
	create  step = "create"
	update  step = "update"
	remove  step = "remove"
)

// decide compares a copy with its original, each nil when it does not exist, and returns what to do with which object.
func decide(
	original, copied *corev1.ConfigMap, namespace string, owners []metav1.OwnerReference,
) (step, *corev1.ConfigMap) {
	if original == nil || !original.DeletionTimestamp.IsZero() {
		if copied == nil {
			return nothing, nil
		}
		return remove, copied
	}
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: original.Name, Labels: maps.Clone(original.Labels), OwnerReferences: owners,
		},
		Data: original.Data, BinaryData: original.BinaryData, Immutable: original.Immutable,
	}
	delete(want.Labels, copyLabel)
	if want.Labels == nil {
		want.Labels = map[string]string{}
	}
	want.Labels[copiedLabel] = "true"
	if copied == nil {
		return create, want
	}
	if equality.Semantic.DeepEqual(want.Data, copied.Data) && maps.Equal(want.Labels, copied.Labels) &&
		equality.Semantic.DeepEqual(want.BinaryData, copied.BinaryData) &&
		equality.Semantic.DeepEqual(want.OwnerReferences, copied.OwnerReferences) {
		return nothing, nil
	}
	if copied.Immutable != nil && *copied.Immutable {
		// It cannot be changed, only replaced: the pass that follows the removal creates it again.
		return remove, copied
	}
	want.ResourceVersion = copied.ResourceVersion
	return update, want
}
