package deploy

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/deploy/hosting"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// doubt is why a plan is not carried out as it is; the zero value is none.
type doubt struct {
	// behind reports that the cache does not show who may have what as it is: the pass is a lost race.
	behind bool
	// clusters are the clusters of the add-on by name, nil for one that does not exist, as the API server has them. They
	// differ from those in the cache in what may be rendered. The agents of clusters write a part of that all the time, so
	// the pass is not repeated for it: it decides again with them.
	clusters map[string]*clusterv1.ManagedCluster
}

func (d doubt) exists() bool { return d.behind || d.clusters != nil }

// confirmed decides about an add-on by what the API server has, as far as the plan takes something.
func (r *Reconciler) confirmed(ctx context.Context, key types.NamespacedName, f facts) (facts, plan, error) {
	p := decide(f)
	d, err := r.stale(ctx, f, p)
	if err == nil && d.clusters != nil {
		f.cluster, f.live = d.clusters[key.Namespace], d.clusters
		if f, err = r.observe(ctx, key, f); err != nil {
			return f, p, err
		}
		if d = (doubt{behind: !f.relevant}); f.relevant {
			p = decide(f)
			d, err = r.stale(ctx, f, p)
		}
	}
	if d.exists() {
		err = reconcile.Behind(addonv1beta1.GroupName, "managedclusteraddons", key.String())
	}
	return f, p, err
}

// stale returns whether a plan is about an add-on that the cache does not show as it is. One makes again what an add-on
// had that is gone: Kubernetes would collect what is made for it, which would wake the next pass, without an end, and
// its agent would have its roles meanwhile. Another one puts an add-on that keeps its configuration back to one that it
// had before. A third one removes something from a cluster, and the cache may show the annotations, the cluster or the
// hosting cluster of before. The first role on a cluster in the life of the process is given only when the API server
// says that the hub accepts it.
func (r *Reconciler) stale(ctx context.Context, f facts, p plan) (doubt, error) {
	again := makesAgain(r.made.had(f.addOn), p)
	back := f.configuration.Choice.Held != "" && (again || changesConfigs(p))
	moves := movesOf(p.works)
	removes := moves.takesObjects() || takesRoles(p) || dropsGuards(f, p)
	if again || back || removes {
		live, err := r.AddOns.SameAddOn(ctx, r.Live, f.addOn)
		if err != nil || live == nil || (again && live.DeletionTimestamp != nil) {
			return doubt{behind: err == nil}, err
		}
		if back && !addonconfig.SameDesired(live.Status.ConfigReferences, f.addOn.Status.ConfigReferences) {
			return doubt{behind: true}, nil
		}
		if removes && !hubprocess.SameWishes(live, f.addOn) {
			return doubt{behind: true}, nil
		}
	}
	grants, err := r.grants(ctx, f, p)
	if err != nil {
		return doubt{}, err
	}
	if removes || grants {
		cached := map[string]*clusterv1.ManagedCluster{f.addOn.Namespace: f.cluster}
		if name := hostName(f); removes && name != "" {
			cached[name] = f.host
		}
		if d, err := r.confirmClusters(ctx, f, cached); err != nil || d.exists() {
			return d, err
		}
		r.accepts.note(f.cluster)
	}
	if d, err := r.confirmNamespaces(ctx, f, p); err != nil || d.exists() {
		return d, err
	}
	if d, err := r.confirmWorks(ctx, f, moves); err != nil || d.exists() {
		return d, err
	}
	r.made.note(f.addOn, p)
	return doubt{}, nil
}

// grants reports whether a plan gives the first role on a cluster of which it is not known yet that the hub accepts it.
func (r *Reconciler) grants(ctx context.Context, f facts, p plan) (bool, error) {
	if !creates(p.bindings) || r.accepts.has(f.cluster) {
		return false, nil
	}
	err := r.accepts.learn(ctx, r.Live)
	return !r.accepts.has(f.cluster), err
}

// confirmWorks asks the API server whether works are as the cache has them from which a plan takes no object that it
// takes from others, because they have it: one may have given it away since, and the object would be in none. Works
// that the add-on does not own, with its label, keep nothing for it.
func (r *Reconciler) confirmWorks(ctx context.Context, f facts, m moves) (doubt, error) {
	if len(m.givers) == 0 {
		return doubt{}, nil
	}
	for _, work := range ownWorks(f) {
		has := map[placed]bool{}
		placedIn(work, has)
		for o := range has {
			if from := m.givers[o]; len(from) == 0 || slices.Contains(from, work) {
				continue
			}
			live, err := reconcile.Get(ctx, r.Live, client.ObjectKeyFromObject(work), &metav1.PartialObjectMetadata{
				TypeMeta: metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"},
			})
			if err != nil || live == nil || live.UID != work.UID || live.Generation != work.Generation {
				return doubt{behind: err == nil}, err
			}
			break
		}
	}
	return doubt{}, nil
}

// confirmNamespaces asks the API server whether other namespaces from which a plan takes roles are still those of
// clusters: that is why an add-on may have no roles there.
func (r *Reconciler) confirmNamespaces(ctx context.Context, f facts, p plan) (doubt, error) {
	asked := map[string]bool{f.addOn.Namespace: true}
	for _, s := range p.bindings {
		if s.Verb != reconcile.Delete || asked[s.Before.Namespace] {
			continue
		}
		name := s.Before.Namespace
		asked[name] = true
		ofCluster, err := r.isOfCluster(ctx, name)
		if err != nil {
			return doubt{}, err
		}
		if !ofCluster {
			continue
		}
		live, err := r.liveNamespace(ctx, name)
		if err != nil || !isOfCluster(live, name) {
			return doubt{behind: err == nil}, err
		}
	}
	return doubt{}, nil
}

// liveNamespace reads the metadata of a namespace from the API server; nil when there is none. Programs of authors may
// list namespaces and not get one.
func (r *Reconciler) liveNamespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	return reconcile.GetListed[*metav1.PartialObjectMetadata](ctx, r.Live, types.NamespacedName{Name: name}, list)
}

// deletionStale returns whether a plan that deletes works, or removes finalizers, is about an earlier add-on of the
// name, which only the cache has, or about clusters or works that are not as the cache has them; or one that creates
// works is about an add-on that lost its finalizers meanwhile, or whose hooks were recorded. The cache of works may be
// ahead of it and show that those of the hooks are gone: they would run again, and nobody would delete their works.
// Only we remove finalizers of ours, one pass after the other.
func (r *Reconciler) deletionStale(ctx context.Context, f deletionFacts, p deletionPlan) (doubt, error) {
	creates, moves := creates(p.works), movesOf(p.works)
	takes := moves.takesObjects()
	if slices.Contains(p.drop, names.FinalizerDependents) {
		live, err := r.observeDependents(ctx, r.live(), f.addOn, f.cluster)
		if err != nil || live.unknown != "" || len(live.there) > 0 {
			return doubt{behind: err == nil}, err
		}
	}
	if f.ours && (takes || len(p.drop) > 0) {
		if d, err := r.confirmPlaces(ctx, f, p); err != nil || d.exists() {
			return d, err
		}
	}
	if d, err := r.confirmWorks(ctx, f.facts, moves); err != nil || d.exists() {
		return d, err
	}
	if !creates && !takes {
		return doubt{}, nil
	}
	live, err := r.AddOns.SameAddOn(ctx, r.Live, f.addOn)
	if err != nil || live == nil {
		return doubt{behind: err == nil}, err
	}
	recorded := live.GetAnnotations()[names.AnnotationHookAttempts] != f.addOn.Annotations[names.AnnotationHookAttempts]
	return doubt{
		behind: (takes && !hubprocess.SameWishes(live, f.addOn)) ||
			(creates && (recorded || !slices.ContainsFunc(live.GetFinalizers(), isGuard))),
	}, nil
}

// confirmPlaces compares the clusters of an add-on that is being deleted, its namespace, and its works on hosting
// clusters with those that the API server has: a hook is skipped where it could not run, and a work on a hosting
// cluster has no owner that takes it along.
func (r *Reconciler) confirmPlaces(ctx context.Context, f deletionFacts, p deletionPlan) (doubt, error) {
	clusters := map[string]*clusterv1.ManagedCluster{f.addOn.Namespace: f.cluster}
	if name := hostName(f.facts); name != "" {
		clusters[name] = f.host
	}
	maps.Copy(clusters, f.hosts)
	if d, err := r.confirmClusters(ctx, f.facts, clusters); err != nil || d.exists() {
		return d, err
	}
	live, err := r.liveNamespace(ctx, f.addOn.Namespace)
	if err != nil {
		return doubt{}, err
	}
	if (live == nil || live.DeletionTimestamp != nil) != f.namespaceDeleting {
		return doubt{behind: true}, nil
	}
	return r.confirmHosted(ctx, f, p)
}

// maxPlaces is how many hosting clusters are asked for one by one.
const maxPlaces = 8

// confirmHosted looks for works on hosting clusters that the cache does not have yet, before the finalizers go that
// guard them.
func (r *Reconciler) confirmHosted(ctx context.Context, f deletionFacts, p deletionPlan) (doubt, error) {
	if !slices.ContainsFunc(p.drop, hosting.IsFinalizer) || len(f.addOn.Name) > validation.LabelValueMaxLength {
		return doubt{}, nil // No work can have a longer name as its label.
	}
	known := map[types.UID]bool{}
	for _, work := range f.works {
		known[work.UID] = true
	}
	places := hosting.Places(f.addOn)
	if len(places) > maxPlaces { // People may write the record: they are asked for together.
		places = []string{metav1.NamespaceAll}
	}
	for _, place := range places {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersion(workv1.GroupVersion).WithKind("ManifestWorkList"))
		err := r.Live.List(ctx, list, client.InNamespace(place), client.MatchingLabels{
			names.LabelAddonName: f.addOn.Name, names.LabelAddonNamespace: f.addOn.Namespace,
		})
		if err != nil {
			return doubt{}, fmt.Errorf("listing the ManifestWorks of add-on %s on hosting clusters: %w",
				client.ObjectKeyFromObject(f.addOn), err)
		}
		for i := range list.Items {
			work := &workv1.ManifestWork{ObjectMeta: list.Items[i].ObjectMeta}
			other := work.Namespace != f.addOn.Namespace && !known[work.UID]
			if other && work.DeletionTimestamp == nil && hosting.Counts(f.addOn, work) {
				return doubt{behind: true}, nil
			}
		}
	}
	return doubt{}, nil
}

// confirmClusters compares clusters with those that the API server has, unless the pass has these.
func (r *Reconciler) confirmClusters(
	ctx context.Context, f facts, cached map[string]*clusterv1.ManagedCluster,
) (doubt, error) {
	all, differ := map[string]*clusterv1.ManagedCluster{}, false
	for name, cluster := range cached {
		if _, is := f.live[name]; is {
			all[name] = cluster
			continue
		}
		live, err := r.liveCluster(ctx, name)
		if err != nil {
			return doubt{}, err
		}
		if !sameStanding(live, cluster) {
			return doubt{behind: true}, nil
		}
		all[name] = live
		differ = differ || (live != nil && clusterDiffers(cluster, live))
	}
	if !differ {
		return doubt{}, nil
	}
	return doubt{clusters: all}, nil
}

// liveCluster reads a cluster from the API server as a cache keeps it; nil when it does not exist. Programs of authors
// may list clusters and not get one.
func (r *Reconciler) liveCluster(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	live, err := reconcile.GetListed[*clusterv1.ManagedCluster](ctx, r.Live, types.NamespacedName{Name: name},
		&clusterv1.ManagedClusterList{})
	if err != nil || live == nil {
		return live, err
	}
	if _, err := (&hubprocess.Trims{}).Cluster(live); err != nil {
		return nil, fmt.Errorf("trimming cluster %s: %w", name, err)
	}
	return live, nil
}
