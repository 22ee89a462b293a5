package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// finalizerGC is the second finalizer that OCM's hub puts on clusters for the same clean-up. We never add it, but
	// take it off, so that a cluster that came under an OCM hub does not stay for ever.
	finalizerGC = "cluster.open-cluster-management.io/resource-cleanup"
	// maxNames is how many names of a kind a message tells.
	maxNames = 5
	// lastPriority is the highest clean-up priority, the one that goes last.
	lastPriority = 100
)

// decideDeleting plans the next step of removing a cluster: add-ons, then ManifestWorks, then certificate requests,
// then access and lease, then finalizers. With these go the requests that an agent made while it still could.
func decideDeleting(f facts, p *plan) {
	if names.CheckCluster(f.name) != nil && !slices.ContainsFunc(f.cluster.Finalizers, isOurs) {
		return // Nothing was ever done for a cluster of such a name.
	}
	var next []step
	next, p.remaining = removeNext(f)
	switch {
	case p.remaining != "":
		p.stages = [][]step{next}
	case emptyConfirmed(f.cluster):
		p.stages = [][]step{removeRequests(f)}
		p.cluster = f.cluster.DeepCopy()
		if !dropFinalizer(p.cluster, names.FinalizerCluster, finalizerGC) {
			p.cluster = nil
		}
	case f.live == nil || f.live.err != nil:
		p.blocked = notAsked(f)
	default:
		p.stages = [][]step{removeRequests(f), append(removeGrants(f, true, worksGone(f)), removeLease(f)...)}
	}
}

func isOurs(finalizer string) bool {
	return finalizer == names.FinalizerCluster || finalizer == finalizerGC
}

// notAsked says why nothing is known about what the server still holds.
func notAsked(f facts) error {
	if f.live == nil {
		return errors.New("the server was not asked whether anything is left")
	}
	return fmt.Errorf("asking what is left in namespace %s: %w", f.name, f.live.err)
}

// removeNext deletes what goes next of add-ons and ManifestWorks, and says what is left of them; empty when nothing is.
// Inside a kind, objects of a lower clean-up priority are gone before the next are deleted.
func removeNext(f facts) ([]step, string) {
	addons, works := objects(f.addons), objects(f.works)
	asked := f.live != nil && f.live.err == nil
	switch {
	case len(addons) > 0 && len(works) > 0:
		return removeFirst(addons), summary("ManagedClusterAddOn", addons) + ", then " + summary("ManifestWork", works)
	case len(addons) > 0:
		return removeFirst(addons), summary("ManagedClusterAddOn", addons)
	case asked && f.live.addons:
		return nil, "a ManagedClusterAddOn that was created a moment ago"
	case len(works) > 0:
		return removeFirst(works), summary("ManifestWork", works)
	case asked && f.live.works:
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

// removeOwn deletes what else on the hub is the cluster's own.
func removeOwn(f facts) []step { return append(removeLease(f), removeRequests(f)...) }

// emptyConfirmed reports whether an earlier pass found nothing left and said so.
func emptyConfirmed(cluster *clusterv1.ManagedCluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionDeleting)
}

// removeFirst deletes the objects of the lowest clean-up priority that is left, but for those that are going already.
func removeFirst(all []client.Object) []step {
	first := slices.MinFunc(all, func(a, b client.Object) int { return cmp.Compare(priority(a), priority(b)) })
	var steps []step
	for _, o := range all {
		if priority(o) == priority(first) && o.GetDeletionTimestamp().IsZero() {
			steps = append(steps, step{Verb: reconcile.Delete, Before: o})
		}
	}
	return steps
}

// priority is the clean-up priority of an object, 0 (first) to 100; what is absent or invalid is 0.
func priority(o metav1.Object) int {
	n, err := strconv.Atoi(o.GetAnnotations()[clusterv1.CleanupPriorityAnnotationKey])
	if err != nil || n < 0 || n > lastPriority {
		return 0
	}
	return n
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
	text := fmt.Sprintf("%d %s (%s", len(list), kind, strings.Join(list[:min(len(list), maxNames)], ", "))
	if len(list) > maxNames {
		return fmt.Sprintf("%s and %d more)", text, len(list)-maxNames)
	}
	return text + ")"
}

// finalizersOf names the finalizers that keep an add-on that is being deleted; its conditions say who removes them.
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
