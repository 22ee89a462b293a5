package cluster

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/lease"
)

// uncopied lets a cache return its own objects.
const uncopied = client.UnsafeDisableDeepCopy

// observe reads the facts about one cluster, from the caches except where doc.go names the API server. What is read
// belongs to the caches and must not be changed.
func (r *Reconciler) observe(ctx context.Context, name string) (facts, error) {
	f := facts{
		name: name, now: r.Clock.Now(), trust: r.Trust, unacceptedLife: r.UnacceptedLife, labels: r.Labels,
		metered: r.Meter.Read(name),
	}
	var err error
	f.cluster, err = reconcile.Peek(ctx, r.Client, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{})
	if err != nil {
		return f, err
	}
	if err := r.observeGrants(ctx, &f); err != nil {
		return f, err
	}
	p := phaseOf(name, f.cluster)
	if p != phaseGone || vanished(f) {
		if err := r.observeOwn(ctx, &f, p); err != nil {
			return f, err
		}
	}
	if needsWorks(p, f) {
		if f.works, err = r.works(ctx, name); err != nil {
			return f, err
		}
		if needsLiveCheck(p, f) {
			f.live = r.checkLive(ctx, f)
		}
	}
	f.requests, err = r.observeRequests(ctx, f, p)
	return f, err
}

// observeRequests reads the certificate requests of a cluster that one of them may accept, or that is about to lose
// them. The last read before the cluster can no longer be recognised goes to the API server.
func (r *Reconciler) observeRequests(
	ctx context.Context, f facts, p phase,
) ([]*certificatesv1.CertificateSigningRequest, error) {
	var list certificatesv1.CertificateSigningRequestList
	var err error
	empty := len(f.addons) == 0 && len(f.works) == 0 && names.CheckCluster(f.name) == nil
	switch {
	case empty && vanished(f), empty && p == phaseDeleting && emptyConfirmed(f.cluster):
		return r.liveRequests(ctx, f.name)
	case empty && p == phaseDeleting, p == phaseNew && f.unacceptedLife > 0, p != phaseGone && needsApprovedRequest(f, p):
		err = r.Client.List(ctx, &list, client.MatchingFields{indexRequests: f.name}, uncopied)
	}
	if err != nil {
		return nil, fmt.Errorf("listing the certificate requests of cluster %s: %w", f.name, err)
	}
	return reconcile.Pointers(list.Items), nil
}

// requestPage is the number of certificate requests that are read at once.
const requestPage = 100

// liveRequests reads the certificate requests with the label of a cluster from the API server. Anybody may have made
// any number of them, so it reads pages and keeps of each request what a cache does.
func (r *Reconciler) liveRequests(
	ctx context.Context, name string,
) ([]*certificatesv1.CertificateSigningRequest, error) {
	var all []*certificatesv1.CertificateSigningRequest
	type page = certificatesv1.CertificateSigningRequestList
	newPage := func() *page { return &page{} }
	ofCluster := client.MatchingLabels{names.LabelClusterName: name}
	for page, err := range reconcile.Pages(ctx, r.Live, newPage, client.Limit(requestPage), ofCluster) {
		if err != nil {
			return nil, fmt.Errorf("listing the certificate requests of cluster %s: %w", name, err)
		}
		for _, request := range reconcile.Pointers(page.Items) {
			kept := request.DeepCopy() // a pointer into the page would keep all of it
			if _, err := approve.Trim(kept); err != nil {
				return nil, fmt.Errorf("listing the certificate requests of cluster %s: %w", name, err)
			}
			all = append(all, kept)
		}
	}
	return all, nil
}

// observeGrants reads the existing access.
func (r *Reconciler) observeGrants(ctx context.Context, f *facts) error {
	everywhere := types.NamespacedName{Name: rolePrefix + f.name}
	registration := types.NamespacedName{Namespace: f.name, Name: everywhere.Name + suffixRegistration}
	work := types.NamespacedName{Namespace: f.name, Name: everywhere.Name + suffixWork}
	var err error
	if f.have.role, err = reconcile.Peek(ctx, r.Client, everywhere, &rbacv1.ClusterRole{}); err != nil {
		return err
	}
	f.have.binding, err = reconcile.Peek(ctx, r.Client, everywhere, &rbacv1.ClusterRoleBinding{})
	if err != nil {
		return err
	}
	f.have.registration, err = reconcile.Peek(ctx, r.Client, registration, &rbacv1.RoleBinding{})
	if err != nil {
		return err
	}
	f.have.work, err = reconcile.Peek(ctx, r.Client, work, &rbacv1.RoleBinding{})
	return err
}

// observeOwn reads the namespace, the add-ons, the lease and the shared roles.
func (r *Reconciler) observeOwn(ctx context.Context, f *facts, p phase) error {
	var err error
	if f.shared, err = r.observeShared(ctx); err != nil {
		return err
	}
	key := types.NamespacedName{Name: f.name}
	if f.namespace, err = reconcile.Peek(ctx, r.Client, key, reconcile.Namespace()); err != nil {
		return err
	}
	f.addons, err = r.AddOns.ListAddOns(ctx, client.InNamespace(f.name), decode.Metadata)
	if err != nil {
		return err
	}
	return r.observeLease(ctx, f, p)
}

// observeLease reads the lease. A stale one is read again from the API server: the cache may be slow while the agent is
// not.
func (r *Reconciler) observeLease(ctx context.Context, f *facts, p phase) error {
	key := types.NamespacedName{Namespace: f.name, Name: lease.ClusterLease}
	var err error
	f.lease, err = reconcile.Peek(ctx, r.Client, key, &coordinationv1.Lease{})
	if err != nil || f.lease == nil {
		return err
	}
	if p == phaseGone || p == phaseNew || p == phaseRefused {
		return nil
	}
	known := meta.FindStatusCondition(f.cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	if known != nil && known.Status == metav1.ConditionUnknown {
		return nil
	}
	grace := lease.ClusterGrace(f.cluster.Spec.LeaseDurationSeconds)
	if lease.Judge(f.lease, f.now, grace).State != lease.Stale {
		return nil
	}
	f.lease, err = reconcile.Get(ctx, r.Live, key, &coordinationv1.Lease{})
	return err
}

func (r *Reconciler) observeShared(ctx context.Context) (map[string]*rbacv1.ClusterRole, error) {
	shared := map[string]*rbacv1.ClusterRole{}
	for _, name := range []string{roleRegistration, roleWork} {
		have, err := reconcile.Peek(ctx, r.Client, types.NamespacedName{Name: name}, &rbacv1.ClusterRole{})
		if err != nil {
			return nil, err
		}
		if have != nil {
			shared[name] = have
		}
	}
	return shared, nil
}

// works lists the ManifestWorks of a namespace: those of add-ons from the shared cache, all others from a cache of
// metadata.
func (r *Reconciler) works(ctx context.Context, namespace string) ([]*workv1.ManifestWork, error) {
	var typed workv1.ManifestWorkList
	if err := r.Client.List(ctx, &typed, client.InNamespace(namespace), uncopied, decode.Metadata); err != nil {
		return nil, fmt.Errorf("listing ManifestWorks of add-ons: %w", err)
	}
	foreign := metav1.PartialObjectMetadataList{}
	foreign.SetGroupVersionKind(workKind("ManifestWorkList"))
	if err := r.ForeignWorks.List(ctx, &foreign, client.InNamespace(namespace), uncopied); err != nil {
		return nil, fmt.Errorf("listing other ManifestWorks: %w", err)
	}
	all := make([]*workv1.ManifestWork, 0, len(typed.Items)+len(foreign.Items))
	for i := range typed.Items {
		all = append(all, &workv1.ManifestWork{ObjectMeta: typed.Items[i].ObjectMeta})
	}
	for i := range foreign.Items {
		all = append(all, &workv1.ManifestWork{ObjectMeta: foreign.Items[i].ObjectMeta})
	}
	return all, nil
}

// checkLive asks the API server whether the namespace of a cluster contains an add-on or a ManifestWork and, if the
// cache shows no cluster, whether it exists.
func (r *Reconciler) checkLive(ctx context.Context, f facts) *live {
	var found live
	if f.cluster == nil {
		cluster, err := reconcile.Get(ctx, r.Live, types.NamespacedName{Name: f.name}, &clusterv1.ManagedCluster{})
		if found.cluster, found.err = cluster != nil, err; cluster != nil || err != nil {
			return &found
		}
	}
	if found.addons, found.err = r.any(ctx, f.name, r.AddOns.AddOnListKind()); found.err != nil {
		return &found
	}
	if found.works = len(f.works) > 0; !found.works { // Those of the cache are enough to wait for.
		found.works, found.err = r.any(ctx, f.name, workKind("ManifestWorkList"))
	}
	return &found
}

// workKind returns a kind of the API of ManifestWorks.
func workKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: workv1.GroupName, Version: workv1.GroupVersion.Version, Kind: kind}
}

func (r *Reconciler) any(ctx context.Context, namespace string, kind schema.GroupVersionKind) (bool, error) {
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := r.Live.List(ctx, &list, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing one %s: %w", kind.Kind, err)
	}
	return len(list.Items) > 0, nil
}

func (r *Reconciler) anyCluster(ctx context.Context) (bool, error) {
	var list clusterv1.ManagedClusterList
	if err := r.Client.List(ctx, &list, client.Limit(1), uncopied, decode.Metadata); err != nil {
		return false, fmt.Errorf("listing clusters: %w", err)
	}
	return len(list.Items) > 0, nil
}
