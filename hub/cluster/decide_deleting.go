package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// finalizerGC is the second finalizer that OCM's hub sets for the same clean-up. We only remove it, so that the
	// deletion of a cluster that came from an OCM hub can end.
	finalizerGC = "cluster.open-cluster-management.io/resource-cleanup"
	// maxNames is the number of names of a kind that a message lists.
	maxNames = 5
)

// decideDeleting plans the next step of a deletion: add-ons, then ManifestWorks, then certificate requests, access and
// lease, then finalizers. Requests that the agent created in the meantime are deleted with the finalizers.
func decideDeleting(f facts, p *plan) {
	if names.CheckCluster(f.name) != nil && !slices.ContainsFunc(f.cluster.Finalizers, isOurs) {
		return // Nothing was ever done for a cluster of such a name.
	}
	var next []step
	next, p.remaining = removeNext(f)
	shrink := shrinkDenied(f)
	switch denial := recordDenial(f); {
	case len(denial) > 0:
		p.stages, p.remaining = [][]step{append(denial, shrink...)}, cmp.Or(p.remaining, "the record of its denial")
	case len(f.addons) == 0 && len(next) > 0 && !asked(f):
		p.stages, p.blocked = [][]step{shrink}, notAsked(f)
	case p.remaining != "":
		p.stages = [][]step{append(shrink, next...)}
	case !asked(f):
		p.stages, p.blocked = [][]step{shrink}, notAsked(f)
	default:
		p.stages = [][]step{removeRequests(f), append(removeGrants(f, true, worksGone(f)), removeLease(f)...)}
		if !emptyConfirmed(f.cluster) {
			return // The condition says first that nothing is left.
		}
		p.cluster = f.cluster.DeepCopy()
		if !dropFinalizer(p.cluster, names.FinalizerCluster, finalizerGC) {
			p.cluster = nil
		}
	}
}

// shrinkDenied takes from the agent of a denied cluster what a denial takes, while something of the cluster is left:
// the agent itself may keep it there.
func shrinkDenied(f facts) []step {
	if !denied(f.cluster) {
		return nil
	}
	return slices.DeleteFunc(shrinkGrants(f), func(s step) bool { return s.Verb == reconcile.Create })
}

func isOurs(finalizer string) bool {
	return finalizer == names.FinalizerCluster || finalizer == finalizerGC
}

// removeNext deletes the next add-ons or ManifestWorks and describes all that are left; empty when none is. Within a
// kind, objects of a lower clean-up priority are gone before the next are deleted.
func removeNext(f facts) ([]step, string) {
	addons, works := objects(f.addons), objects(f.works)
	switch {
	case len(addons) > 0 && len(works) > 0:
		return removeFirst(addons), summary("ManagedClusterAddOn", addons) + ", then " + summary("ManifestWork", works)
	case len(addons) > 0:
		return removeFirst(addons), summary("ManagedClusterAddOn", addons)
	case asked(f) && f.live.addons:
		return nil, "a ManagedClusterAddOn that was created a moment ago"
	case len(works) > 0:
		return removeFirst(works), summary("ManifestWork", works)
	case asked(f) && f.live.works:
		return nil, "a ManifestWork that was created a moment ago"
	}
	return nil, ""
}

func removeLease(f facts) []step {
	if f.lease == nil {
		return nil
	}
	return []step{{Verb: reconcile.Delete, Before: f.lease}}
}

func removeRequests(f facts) []step {
	var steps []step
	for _, request := range ownRequests(f.name, f.requests) {
		steps = append(steps, step{Verb: reconcile.Delete, Before: request})
	}
	return steps
}

// removeOwn deletes the lease and the certificate requests of the cluster.
func removeOwn(f facts) []step { return append(removeLease(f), removeRequests(f)...) }

// emptyConfirmed reports whether the condition Deleting says that nothing is left. Its agent may write that, too, so it
// says what users were told, and stands for nothing else.
func emptyConfirmed(cluster *clusterv1.ManagedCluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionDeleting)
}

// removeFirst deletes the objects with the lowest clean-up priority, except those that are being deleted already.
func removeFirst(all []client.Object) []step {
	first := slices.MinFunc(all, func(a, b client.Object) int {
		return cmp.Compare(addonapi.CleanupPriority(a), addonapi.CleanupPriority(b))
	})
	var steps []step
	for _, o := range all {
		if addonapi.CleanupPriority(o) == addonapi.CleanupPriority(first) && o.GetDeletionTimestamp().IsZero() {
			steps = append(steps, step{Verb: reconcile.Delete, Before: o})
		}
	}
	return steps
}

// summary counts and names objects: "2 ManagedClusterAddOns (hello, logs)".
func summary(kind string, all []client.Object) string {
	list := make([]string, 0, len(all))
	for _, o := range all {
		list = append(list, o.GetName()+finalizersOf(o))
	}
	slices.Sort(list)
	if len(list) > 1 {
		kind += "s"
	}
	return fmt.Sprintf("%d %s (%s)", len(list), kind, message.List(list, maxNames, ", "))
}

// finalizersOf names the finalizers of an add-on that is being deleted; its conditions explain who removes them.
func finalizersOf(o client.Object) string {
	_, isAddOn := o.(*addonv1beta1.ManagedClusterAddOn)
	if !isAddOn || o.GetDeletionTimestamp().IsZero() || len(o.GetFinalizers()) == 0 {
		return ""
	}
	return " kept by " + strings.Join(o.GetFinalizers(), " and ")
}

func objects[T client.Object](typed []T) []client.Object {
	all := make([]client.Object, len(typed))
	for i, o := range typed {
		all[i] = o
	}
	return all
}

// left reports whether any access of the cluster exists. Only access proves that a cluster without ManagedCluster was
// accepted once; a namespace alone may have been prepared for a future cluster.
func (g grants) left(cluster string) bool {
	return ours(g.role, cluster) || ours(g.binding, cluster) || ours(g.registration, cluster) || ours(g.work, cluster)
}

// vanished reports whether a ManagedCluster is gone without clean-up, because a user removed its finalizers.
func vanished(f facts) bool {
	return f.cluster == nil && f.have.left(f.name) && names.CheckCluster(f.name) == nil
}

// decideGone cleans up after a cluster that vanished as after one that is deleted. Its access is deleted at once,
// except the RoleBinding for ManifestWorks: it stays until no work is left, because later passes recognise the cluster
// by it.
func decideGone(f facts, p *plan) {
	if !vanished(f) {
		p.stages = [][]step{removeGrants(f, true, worksGone(f))}
		return
	}
	switch {
	case !asked(f):
		p.blocked = notAsked(f)
		return
	case f.live.cluster:
		// The ManagedCluster was created again a moment ago, and these objects may already belong to it.
		p.remaining = "the event that shows the ManagedCluster, which was created again"
		return
	}
	var access []step
	work := f.have.work
	if ours(work, f.name) && slices.Contains(work.Finalizers, names.FinalizerManifestWork) {
		access = removeGrants(f, true, false)
	}
	var rest []step
	if rest, p.remaining = removeNext(f); p.remaining != "" {
		p.stages = [][]step{append(access, rest...)}
		return
	}
	p.stages = [][]step{removeOwn(f), removeGrants(f, true, true)}
}
