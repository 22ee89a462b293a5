package cluster

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// confirm reads from the API server what has to be confirmed, and returns an error if that leads to another plan. What
// is read is used for nothing else: the event that shows it to the cache starts the next pass.
func (r *Reconciler) confirm(ctx context.Context, f facts, p plan) error {
	c := toConfirm(f, p)
	if c.cluster {
		if err := r.confirmCluster(ctx, f.name, f.cluster); err != nil {
			return err
		}
	}
	var err error
	if c.namespace {
		key := types.NamespacedName{Name: f.name}
		if f.namespace, err = reconcile.Get(ctx, r.Live, key, reconcile.Namespace()); err != nil {
			return err
		}
		if !p.agrees(decide(f)) {
			return reconcile.Behind(corev1.GroupName, "namespaces", f.name)
		}
	}
	if c.addons {
		if err := r.confirmLabels(ctx, f); err != nil {
			return err
		}
	}
	if c.request != nil || c.requests {
		if f.requests, err = r.requestsToConfirm(ctx, f.name, c.request); err != nil {
			return err
		}
		if !p.agrees(decide(f)) {
			return reconcile.Behind(certificatesv1.GroupName, "certificatesigningrequests", "of cluster "+f.name)
		}
	}
	return nil
}

// confirmCluster reads from the API server that a cluster that gets or loses something is as the cache shows it, or
// that it does not exist if the cache has none. Where the hub was restored to an earlier state, its cache may have one
// longer than the objects that belong to it, and a hub manager that starts with an API server that is behind may see an
// earlier cluster of the name, or its denial.
func (r *Reconciler) confirmCluster(ctx context.Context, name string, cached *clusterv1.ManagedCluster) error {
	found, err := reconcile.Get(ctx, r.Live, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{})
	if err != nil {
		return err
	}
	behind := reconcile.Behind(clusterv1.GroupName, "managedclusters", name)
	if cached == nil {
		if found != nil {
			return behind
		}
		return nil
	}
	changed := found == nil || found.UID != cached.UID
	switch {
	case changed && cached.DeletionTimestamp.IsZero():
		return fmt.Errorf("ManagedCluster %s is only in the cache, so nothing is given to its agent or taken from it",
			cached.Name)
	case changed, found.Spec.HubAcceptsClient != cached.Spec.HubAcceptsClient,
		found.DeletionTimestamp.IsZero() != cached.DeletionTimestamp.IsZero():
		return behind
	}
	return nil
}

// requestsToConfirm reads one certificate request as a cache keeps it, or all those of the cluster if none is named.
func (r *Reconciler) requestsToConfirm(
	ctx context.Context, cluster string, one *certificatesv1.CertificateSigningRequest,
) ([]*certificatesv1.CertificateSigningRequest, error) {
	if one == nil {
		return r.liveRequests(ctx, cluster)
	}
	key := client.ObjectKeyFromObject(one)
	found, err := reconcile.Get(ctx, r.Live, key, &certificatesv1.CertificateSigningRequest{})
	if err != nil || found == nil {
		return nil, err
	}
	if _, err := approve.Trim(found); err != nil {
		return nil, fmt.Errorf("trimming certificate request %s: %w", key.Name, err)
	}
	return []*certificatesv1.CertificateSigningRequest{found}, nil
}

// confirmLabels returns an error if the API server has an add-on that the cache lacks, and of which the cluster has the
// feature label.
func (r *Reconciler) confirmLabels(ctx context.Context, f facts) error {
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(r.AddOns.AddOnListKind())
	if err := r.Live.List(ctx, &list, client.InNamespace(f.name)); err != nil {
		return fmt.Errorf("listing the add-ons of cluster %s: %w", f.name, err)
	}
	known := map[string]bool{}
	for _, addon := range f.addons {
		known[addon.Name] = true
	}
	for i := range list.Items {
		name := list.Items[i].Name
		if _, labelled := f.cluster.Labels[featurePrefix+name]; labelled && !known[name] {
			return reconcile.Behind(addonv1beta1.GroupName, "managedclusteraddons", f.name+"/"+name)
		}
	}
	return nil
}

// confirmNoCluster returns an error if the API server has any cluster.
func (r *Reconciler) confirmNoCluster(ctx context.Context) error {
	exists, err := r.any(ctx, "", schema.GroupVersionKind{
		Group: clusterv1.GroupName, Version: clusterv1.GroupVersion.Version, Kind: "ManagedClusterList",
	})
	if err == nil && exists {
		return reconcile.Behind(clusterv1.GroupName, "managedclusters", "of this hub")
	}
	return err
}
