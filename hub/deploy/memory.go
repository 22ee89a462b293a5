package deploy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/kept"
	"github.com/spokelet/spokelet/internal/pause"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// verify remembers that this version renders records of works the same as another version did, which rendered the works
// of an add-on; zero forgets them.
func (r *Reconciler) verify(key types.NamespacedName, sum works.Sum) {
	r.verified.Change(key, func(works.Sum) (works.Sum, bool) { return sum, sum != works.Sum{} })
}

// accepts are the clusters of which the API server said in the life of this process that the hub accepts them. A cache
// that was behind at its start is not any more then.
type accepts struct {
	clusters kept.Map[string, types.UID]
	// asked counts the clusters that were asked for one by one since all were listed, and listed how many those were.
	asked, listed atomic.Int64
	list          singleflight.Group
}

// fewAccepts is how many clusters are asked for one by one before all are listed, acceptsPage how many of these at
// once, and acceptsShare how many times more clusters there may be than were asked for.
const (
	fewAccepts   = 16
	acceptsPage  = 100
	acceptsShare = 8
)

// learn counts one more cluster to ask for. Where these become many, because an add-on is being installed on all
// clusters, it notes all that live has. They are read without their type: one that cannot be decoded, which everybody
// with a bootstrap credential may write on a hub with the definitions of OCM, must not keep the roles from the others.
func (a *accepts) learn(ctx context.Context, live client.Reader) error {
	if a.asked.Add(1) <= max(fewAccepts, a.listed.Load()/acceptsShare) {
		return nil
	}
	_, err, _ := a.list.Do("", func() (any, error) {
		count := int64(0)
		newPage := func() *unstructured.UnstructuredList {
			page := &unstructured.UnstructuredList{}
			page.SetGroupVersionKind(schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedClusterList"))
			return page
		}
		for page, err := range reconcile.Pages(ctx, live, newPage, client.Limit(acceptsPage)) {
			if err != nil {
				return nil, fmt.Errorf("asking which clusters the hub accepts: %w", err)
			}
			for i := range page.Items {
				accepted, _, _ := unstructured.NestedBool(page.Items[i].Object, "spec", "hubAcceptsClient")
				a.note(&clusterv1.ManagedCluster{
					ObjectMeta: metav1.ObjectMeta{Name: page.Items[i].GetName(), UID: page.Items[i].GetUID()},
					Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: accepted},
				})
				count++
			}
		}
		a.listed.Store(count)
		a.asked.Store(0)
		return nil, nil
	})
	return err
}

// has reports whether a cluster is one of them.
func (a *accepts) has(cluster *clusterv1.ManagedCluster) bool {
	uid, known := a.clusters.Get(cluster.Name)
	return known && uid == cluster.UID
}

// note notes what the API server said of a cluster.
func (a *accepts) note(cluster *clusterv1.ManagedCluster) {
	if isAccepted(cluster) {
		a.clusters.Put(cluster.Name, cluster.UID)
	}
}

// modes has the modes of ClusterManagementAddOns with add-ons that ask for their hosting cluster, by their names. The
// cache has them as the type of the API module, which lacks the field, so the API server is asked: once for each
// version of one, and never for an add-on that does not ask, so that a fleet without hosted add-ons pays nothing.
type modes struct {
	kept.Map[string, modeOf]
}

// modeOf is the mode that a version of a ClusterManagementAddOn has.
type modeOf struct{ version, mode string }

// of returns spec.hostedModeAutoDiscovery.mode of a ClusterManagementAddOn; empty where it is not set.
func (m *modes) of(
	ctx context.Context, live client.Reader, cma *addonv1beta1.ClusterManagementAddOn,
) (string, error) {
	known, _ := m.Get(cma.Name)
	if known.version != "" && known.version == cma.ResourceVersion {
		return known.mode, nil
	}
	mode, version, err := addonapi.AutoDiscovery(ctx, live, cma.Name)
	if err != nil {
		return "", err
	}
	m.Put(cma.Name, modeOf{cmp.Or(version, cma.ResourceVersion), mode})
	return mode, nil
}

// making tells whether bindings and works were made for an add-on.
type making struct{ bindings, works bool }

// toldBy returns what the status of an add-on says of that, also where not all of it could be made or applied.
func toldBy(addOn *addonv1beta1.ManagedClusterAddOn) making {
	conditions := addOn.Status.Conditions
	applied := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnManifestApplied)
	return making{
		bindings: meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnRegistrationApplied) != nil,
		works: applied != nil && (applied.Status == metav1.ConditionTrue ||
			applied.Reason == addonv1beta1.AddonManifestAppliedReasonManifestsApplyFailed),
	}
}

// made has the add-ons for which this process makes bindings or works, until their status says so.
type made struct {
	kept.Map[types.NamespacedName, madeFor]
}

// madeFor holds what is made for the add-on with a UID.
type madeFor struct {
	uid types.UID
	making
}

// had returns what an add-on had, by its status or by what this process remembers.
func (m *made) had(addOn *addonv1beta1.ManagedClusterAddOn) making {
	told := toldBy(addOn)
	known, _ := m.Get(client.ObjectKeyFromObject(addOn))
	if known.uid != addOn.UID {
		return told
	}
	return making{bindings: told.bindings || known.bindings, works: told.works || known.works}
}

// note remembers what a plan makes for an add-on, as far as its status does not say it.
func (m *made) note(addOn *addonv1beta1.ManagedClusterAddOn, p plan) {
	told := toldBy(addOn)
	m.Change(client.ObjectKeyFromObject(addOn), func(known madeFor) (madeFor, bool) {
		if known.uid != addOn.UID {
			known = madeFor{uid: addOn.UID}
		}
		known.bindings = !told.bindings && (known.bindings || creates(p.bindings))
		known.works = !told.works && (known.works || creates(p.works))
		return known, known.making != making{}
	})
}

// asksFor has, for each add-on whose agents want permissions in other namespaces than that of its cluster, the names
// of those. They are noted before they are read: a namespace may become that of a cluster, or cease to be, before a
// binding in it is in the cache, and a refused one has none. No object says it; a new process asks again.
type asksFor struct {
	kept.Map[types.NamespacedName, []string]
}

// set notes the namespaces of the permissions of an add-on.
func (a *asksFor) set(key types.NamespacedName, permissions []addon.Permission) {
	var namespaces []string
	for _, permission := range permissions {
		if permission.Namespace != "" && permission.Namespace != key.Namespace {
			namespaces = append(namespaces, permission.Namespace)
		}
	}
	a.Change(key, func([]string) ([]string, bool) { return namespaces, len(namespaces) > 0 })
}

// requests returns a request for each add-on whose agents want permissions in a namespace.
func (a *asksFor) requests(namespace string) []ctrl.Request {
	var all []ctrl.Request
	a.Each(func(key types.NamespacedName, namespaces []string) {
		if slices.Contains(namespaces, namespace) {
			all = append(all, ctrl.Request{NamespacedName: key})
		}
	})
	return all
}

// passed remembers, while an add-on has RoleBindings for all clusters, on which clusters its agents have their own, or
// may have none. After a restart every add-on has a pass, so nothing of it is lost.
type passed struct {
	mutex sync.Mutex
	of    map[string]*passes
}

// passes are those of one add-on.
type passes struct {
	// clusters are those that had a pass.
	clusters map[string]onePass
	// awaited is how many the last count asked for.
	awaited int
	// failed is why the RoleBindings could not be deleted, in the pass of the cluster repeats; it is tried again at again,
	// after that pause.
	failed  error
	repeats string
	again   time.Time
	pause   time.Duration
}

// onePass is a pass of an add-on on a cluster: of which UID it was, and whether its agents were denied all roles.
type onePass struct {
	uid    types.UID
	denied bool
}

// note notes a pass, and reports whether there were as many as the last count asked for.
func (p *passed) note(key types.NamespacedName, uid types.UID, denied bool) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.of == nil {
		p.of = map[string]*passes{}
	}
	have := p.of[key.Name]
	if have == nil {
		have = &passes{clusters: map[string]onePass{}}
		p.of[key.Name] = have
	}
	have.clusters[key.Namespace] = onePass{uid, denied}
	return len(have.clusters) >= have.awaited
}

// denied returns the clusters whose agents were denied all roles when they had their pass.
func (p *passed) denied(addOn string) []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	have := p.of[addOn]
	if have == nil {
		return nil
	}
	var clusters []string
	for cluster, pass := range have.clusters {
		if pass.denied {
			clusters = append(clusters, cluster)
		}
	}
	return clusters
}

// turn reports whether a pass is to delete the RoleBindings now. The one that repeats it gets the last error until
// then, so that its queue repeats it.
func (p *passed) turn(key types.NamespacedName, now time.Time) (bool, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	have := p.of[key.Name]
	if have == nil || have.failed == nil || !now.Before(have.again) {
		return true, nil
	}
	if have.repeats == key.Namespace {
		return false, have.failed
	}
	return false, nil
}

// fail notes why the RoleBindings could not be deleted, and returns it.
func (p *passed) fail(key types.NamespacedName, now time.Time, failed error) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if have := p.of[key.Name]; have != nil {
		have.pause = pause.Growing{First: firstRetry, Last: lastRetry}.Next(have.pause)
		have.failed, have.repeats, have.again = failed, key.Namespace, now.Add(have.pause)
	}
	return failed
}

// leave forgets a cluster that the add-on leaves, so that the next pass counts again; it reports whether one waits for
// others.
func (p *passed) leave(key types.NamespacedName) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	have := p.of[key.Name]
	if have == nil {
		return false
	}
	delete(have.clusters, key.Namespace)
	have.awaited = 0
	if have.repeats == key.Namespace {
		have.failed = nil
	}
	return true
}

// complete reports whether the add-on had a pass on each of these clusters. That of an earlier add-on of the name, with
// another UID, does not count.
func (p *passed) complete(addOn string, clusters map[string]types.UID) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	have := p.of[addOn]
	if have == nil {
		return false
	}
	for cluster, uid := range clusters {
		if pass, is := have.clusters[cluster]; !is || pass.uid != uid {
			have.awaited = len(clusters)
			return false
		}
	}
	return true
}

// forget forgets the passes of an add-on.
func (p *passed) forget(addOn string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.of, addOn)
}
