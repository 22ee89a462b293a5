package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// livingOn returns the UIDs of the add-ons that are there, by cluster, also while finalizers hold them: a hook that
// runs may need the roles. It needs their metadata only.
func livingOn(addOns []client.Object) map[string]types.UID {
	clusters := map[string]types.UID{}
	for _, addOn := range addOns {
		if isThere(addOn) {
			clusters[addOn.GetNamespace()] = addOn.GetUID()
		}
	}
	return clusters
}

// isThere reports whether an add-on is not being deleted, or held by finalizers.
func isThere(addOn client.Object) bool {
	return addOn.GetDeletionTimestamp() == nil || len(addOn.GetFinalizers()) > 0
}

// dropFormer deletes the RoleBindings of an add-on for all clusters after the last of its agents got its own. Until
// that succeeds, the passes are remembered: only this one is repeated. uid is that of the add-on of the pass.
func (r *Reconciler) dropFormer(ctx context.Context, key types.NamespacedName, uid types.UID, f facts) error {
	if len(f.former) == 0 {
		return nil
	}
	denied := f.clusterKnown && !serves(f.cluster)
	if denied {
		live, err := r.liveCluster(ctx, key.Namespace)
		if err != nil {
			return err
		}
		if serves(live) { // Its agent has no binding of its own yet.
			return reconcile.Behind(clusterv1.GroupName, "managedclusters", key.Namespace)
		}
	}
	if !r.passed.note(key, uid, denied) {
		return nil
	}
	return r.dropComplete(ctx, key, f.former)
}

// serves reports whether the agents of a cluster may have roles.
func serves(c *clusterv1.ManagedCluster) bool { return isAccepted(c) && c.DeletionTimestamp.IsZero() }

// leaveFormer is the pass of an add-on that is gone: it may be the one for which the others waited.
func (r *Reconciler) leaveFormer(ctx context.Context, key types.NamespacedName) error {
	if !r.passed.leave(key) {
		return nil
	}
	former, err := r.listFormer(ctx, key)
	if err != nil || len(former) == 0 {
		return err
	}
	return r.dropComplete(ctx, key, former)
}

// dropComplete deletes the RoleBindings for all clusters if the add-on had a pass on each of them. While that fails,
// the pass of one cluster repeats it, with growing pauses, and not that of each.
func (r *Reconciler) dropComplete(ctx context.Context, key types.NamespacedName, former []*rbacv1.RoleBinding) error {
	now := r.Clock.Now()
	if turn, failed := r.passed.turn(key, now); !turn {
		return failed
	}
	done, err := r.tryDrop(ctx, key, former)
	if err != nil {
		return r.passed.fail(key, now, err)
	}
	if done {
		r.passed.forget(key.Name)
	}
	return nil
}

// tryDrop deletes the RoleBindings for all clusters, and reports whether it did, if the add-on had a pass on each of
// them by what the cache and the API server say.
func (r *Reconciler) tryDrop(
	ctx context.Context, key types.NamespacedName, former []*rbacv1.RoleBinding,
) (done bool, err error) {
	// One that cannot be decoded is there as well.
	all, err := r.AddOns.ListWatched(ctx, client.MatchingFields{addonapi.IndexName: key.Name}, decode.Metadata)
	if err != nil || !r.passed.complete(key.Name, livingOn(all)) {
		return false, err
	}
	// The cache may lack the add-on on a cluster whose agent has nothing else yet.
	if all, err = r.liveAddOns(ctx, key.Name); err != nil || !r.passed.complete(key.Name, livingOn(all)) {
		return false, err
	}
	for _, cluster := range r.passed.denied(key.Name) {
		live, err := r.liveCluster(ctx, cluster)
		if err != nil {
			return false, err
		}
		if serves(live) { // It was accepted again since its pass. The next one gives its agent a binding.
			r.passed.leave(types.NamespacedName{Namespace: cluster, Name: key.Name})
			return false, nil
		}
	}
	former = slices.DeleteFunc(slices.Clone(former), func(binding *rbacv1.RoleBinding) bool {
		return binding.Namespace == key.Namespace // It became that of this cluster.
	})
	return true, errors.Join(runAll(ctx, r.bindingWriter(), dropBindings(former))...)
}

// liveAddOns lists the metadata of an add-on on all clusters from the API server.
func (r *Reconciler) liveAddOns(ctx context.Context, name string) ([]client.Object, error) {
	var all []client.Object
	newPage := func() *metav1.PartialObjectMetadataList {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(r.AddOns.AddOnListKind())
		return page
	}
	named := client.MatchingFields{metav1.ObjectNameField: name}
	for page, err := range reconcile.Pages(ctx, r.Live, newPage, client.Limit(addOnPage), named) {
		if err != nil {
			return nil, fmt.Errorf("listing add-on %s on all clusters: %w", name, err)
		}
		for i := range page.Items {
			all = append(all, &page.Items[i])
		}
	}
	return all, nil
}

// addOnPage is how many add-ons are listed at once.
const addOnPage = 500

// passUnread is the pass of an add-on of which something cannot be decoded, as far as its RoleBindings for all clusters
// go: they must not stay for the agents of clusters that are denied, only because the agent of one cluster makes its
// objects such that nobody can read them. Its own agent keeps what it has by RoleBindings of its own, unless the hub
// does not accept its cluster.
func (r *Reconciler) passUnread(ctx context.Context, key types.NamespacedName, f facts, cause error) error {
	if !decode.IsUnknown(cause) {
		return nil
	}
	return r.passKept(ctx, key, f, cause)
}

// passKept is a pass that changes no RoleBindings but those: the agent keeps by its own what it has by them. The cause
// is why it is not known what the agent asks for.
func (r *Reconciler) passKept(ctx context.Context, key types.NamespacedName, f facts, cause error) error {
	_, found, err := r.Agents.Agent(ctx, key.Name)
	if err != nil || !found {
		return err
	}
	if f.former, err = r.listFormer(ctx, key); err != nil || len(f.former) == 0 {
		return err
	}
	uid, err := r.keepUnread(ctx, key, f, cause)
	if err != nil {
		return err
	}
	return r.dropFormer(ctx, key, uid, f)
}

// keepUnread gives the agent of such an add-on RoleBindings of its own, unless the hub does not accept its cluster.
// That needs the metadata of the add-on only, of which it returns the UID.
func (r *Reconciler) keepUnread(
	ctx context.Context, key types.NamespacedName, f facts, cause error,
) (types.UID, error) {
	all, err := r.AddOns.ListWatched(ctx, client.InNamespace(key.Namespace), decode.Metadata)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(all, func(addOn client.Object) bool { return addOn.GetName() == key.Name })
	if at < 0 {
		return "", nil
	}
	uid := all[at].GetUID()
	denied := f.clusterKnown && !isAccepted(f.cluster)
	if denied || !isThere(all[at]) || (all[at].GetDeletionTimestamp() != nil && !addonapi.HookRuns(all[at])) {
		return uid, nil // It has no roles: none is made that the next pass would end.
	}
	f.addOn = &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, UID: uid, OwnerReferences: all[at].GetOwnerReferences(),
	}}
	f.cluster = &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}}
	f.setupErr = cause
	if f.bindings, err = r.listBindings(ctx, key); err != nil {
		return uid, err
	}
	return uid, errors.Join(r.runBindings(ctx, keepFormer(f))...)
}
