package deploy

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// hubScheme has the kinds of a hub.
func hubScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(rbacv1.AddToScheme(scheme), corev1.AddToScheme(scheme), clusterv1.Install(scheme),
		addonv1alpha1.Install(scheme), workv1.Install(scheme)))
	return scheme
}

// liveWith is an API server with an add-on and clusters.
func liveWith(t *testing.T, addOn *addonv1beta1.ManagedClusterAddOn, others ...client.Object) client.Client {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(addonapi.AddOnToAlpha(addOn)).
		WithObjects(others...).
		WithIndex(&clusterv1.ManagedCluster{}, metav1.ObjectNameField, nameOf).Build()
}

// nameOf is an index by name.
func nameOf(o client.Object) []string { return []string{o.GetName()} }

// lost returns the objects that works lose, by namespace of the work and name.
func lost(steps []workStep) (all []string) {
	there := map[string]bool{}
	for _, s := range steps {
		if s.Verb == reconcile.Patch {
			for _, id := range works.ReadAll(s.After) {
				there[s.After.Namespace+"/"+id.Name] = true
			}
		}
	}
	for _, s := range steps {
		if s.Verb == reconcile.Patch || s.Verb == reconcile.Delete {
			for _, id := range works.ReadAll(s.Before) {
				if !there[s.Before.Namespace+"/"+id.Name] {
					all = append(all, s.Before.Namespace+"/"+id.Name)
				}
			}
		}
	}
	return all
}

// The cache has the add-on with earlier values, by which the author names an object otherwise: the work keeps its number
// of manifests, and loses an object.
//
// Shows: hub/removed-when-confirmed
func TestNoObjectGivesItsPlaceToAnotherByWhatOnlyTheCacheSays(t *testing.T) {
	f := factsOf(configMap("here", 1), configMap("named-by-new-values", 1))
	f.addOn.Annotations = map[string]string{"addon.open-cluster-management.io/values": "new"}
	f, _ = simulate(t, f)
	live := liveWith(t, f.addOn, f.cluster)

	cached := f
	cached.addOn = f.addOn.DeepCopy()
	cached.addOn.Annotations = map[string]string{"addon.open-cluster-management.io/values": "old"}
	cached.rendering.Objects = factsOf(configMap("here", 1), configMap("named-by-old-values", 1)).rendering.Objects
	planned, err := planWorks(cached)
	require.NoError(t, err)
	require.Equal(t, []string{"c1/named-by-new-values"}, lost(planned.steps), "%v", verbsOf(planned.steps))

	r := &Reconciler{Live: live, AddOns: addonapi.Client{}}
	stale, err := isStale(r.stale(t.Context(), cached, plan{works: planned.steps}))
	require.NoError(t, err)
	assert.True(t, stale, "object named-by-new-values is deleted on the cluster by an earlier copy of the add-on")
}

// The cache has the add-on with the hosting cluster of before, which the API server has not any more.
//
// Shows: hub/removed-when-confirmed
func TestNoObjectMovesToAHostByWhatOnlyTheCacheSays(t *testing.T) {
	live := hostedFacts("")
	live.addOn.Annotations = nil
	live, _ = simulate(t, live)
	require.Len(t, live.works, 1)

	cached := hostedFacts("host")
	cached.works = live.works
	planned, err := planWorks(cached)
	require.NoError(t, err)
	require.Equal(t, []string{"c1/there"}, lost(planned.steps), "%v", verbsOf(planned.steps))

	r := &Reconciler{Live: liveWith(t, live.addOn, live.cluster, cached.host), AddOns: addonapi.Client{}}
	stale, err := isStale(r.stale(t.Context(), cached, plan{works: planned.steps}))
	require.NoError(t, err)
	assert.True(t, stale, "object there is deleted on c1 and made on host, by an earlier copy of the add-on: %v", verbsOf(planned.steps))
}

// The hub manager starts with an API server that is behind for add-ons. It shows the last version of an earlier add-on,
// which was about to lose its finalizers; there is another one of the name by now, which is hosted.
//
// Shows: hub/removed-when-confirmed
func TestTheDeletionOfAnEarlierAddOnTakesNoWorkOfTheNextOne(t *testing.T) {
	deleted := metav1.NewTime(time.Unix(940, 0))
	earlier := addOnAt("c1")
	earlier.UID, earlier.DeletionTimestamp = "earlier", &deleted
	earlier.Finalizers = []string{finalizerHostedObjects}
	earlier.Annotations = map[string]string{names.AnnotationHostingCluster: "host", names.AnnotationHostedOn: "host"}
	earlier.Annotations[names.AnnotationHookAttempts] = encodeRecord(map[works.Side]attempts{
		works.Managed: {Done: "earlier"}, works.Hosting: {Done: "earlier"},
	})
	present := addOnAt("c1")
	present.UID, present.Finalizers = "present", []string{finalizerHostedObjects}
	present.Annotations = map[string]string{names.AnnotationHostingCluster: "host", names.AnnotationHostedOn: "host"}

	work := hostingWork("addon-a-deploy-hosting-c1-0")
	work.UID, work.Annotations = "w", map[string]string{names.AnnotationAddonUID: "present"}
	cluster := func(name string) *clusterv1.ManagedCluster {
		return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	}
	build := func(addOn client.Object) client.Client {
		return cacheOrHub(t, interceptor.Funcs{}, addOn, work, cluster("c1"), cluster("host"), ownNamespace("c1"))
	}
	cache, live := build(earlier), build(present)
	r := behindIn(cache, live, failing{err: errors.New("not asked")})
	_, err := r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	t.Log("pass:", err)
	require.NoError(t, cache.Get(t.Context(), client.ObjectKeyFromObject(work), &workv1.ManifestWork{}),
		"the work of the present add-on on its hosting cluster was deleted for the earlier one")
}

// The hub manager starts with an API server that is behind for clusters or add-ons, as in hub/token: there nothing is
// deleted then.
//
// Shows: hub/removed-when-confirmed
func TestNoRoleIsTakenByWhatOnlyTheCacheSays(t *testing.T) {
	cluster := func(accepted bool) client.Object {
		return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: accepted}}
	}
	for sentence, cached := range map[string][]client.Object{
		"the cluster is not in the cache yet": {addOnAt("c1")},
		"the cluster was not accepted":        {addOnAt("c1"), cluster(false)},
		"the add-on is not in the cache yet":  {cluster(true)},
	} {
		t.Run(sentence, func(t *testing.T) {
			binding := roleBinding("shared", "c1", "a")
			build := func(objects ...client.Object) client.Client {
				return cacheOrHub(t, interceptor.Funcs{}, append(objects, binding, ownNamespace("c1"))...)
			}
			cache, live := build(cached...), build(addOnAt("c1"), cluster(true))
			r := behindIn(cache, live, addon.Registry{})
			_, _ = r.Reconcile(context.Background(), reconcile.Request("c1", "a")[0])
			assert.NoError(t, cache.Get(t.Context(), client.ObjectKeyFromObject(binding), &rbacv1.RoleBinding{}),
				"the agent of an add-on that the API server has, on a cluster that it accepts, lost its role")
		})
	}
}

// The author renders an object for clusters with a label. The cache has the ManagedCluster as it was before it had that.
//
// Shows: hub/removed-when-confirmed
func TestNoObjectIsDeletedByAnEarlierCopyOfItsCluster(t *testing.T) {
	f := factsOf(configMap("always", 1), configMap("for-clusters-with-a-label", 1))
	f.cluster.Labels = map[string]string{"gpu": "yes"}
	f, _ = simulate(t, f)
	live := liveWith(t, f.addOn, f.cluster)

	cached := f
	cached.cluster = f.cluster.DeepCopy()
	cached.cluster.Labels, cached.cluster.ResourceVersion = nil, "earlier"
	cached.rendering.Objects = f.rendering.Objects[:1]
	planned, err := planWorks(cached)
	require.NoError(t, err)
	require.True(t, movesOf(planned.steps).takesObjects())
	r := &Reconciler{Live: live, AddOns: addonapi.Client{}}
	stale, err := isStale(r.stale(t.Context(), cached, plan{works: planned.steps}))
	require.NoError(t, err)
	assert.True(t, stale, "it loses %v, by a copy of cluster c1 that the API server does not have any more", lost(planned.steps))
}

// Shows: security/decoys
func TestAWorkThatTheAddOnDoesNotOwnKeepsNothingForIt(t *testing.T) {
	f := factsOf(configMap("a", 1), configMap("b", 1))
	f, _ = simulate(t, f)
	decoy := f.works[0].DeepCopy()
	decoy.Name, decoy.UID, decoy.OwnerReferences = "decoy", "decoy", nil
	f.works = append(f.works, decoy)
	f.rendering.Objects = f.rendering.Objects[:1]
	planned, err := planWorks(f)
	require.NoError(t, err)
	require.NotEmpty(t, lost(planned.steps))
	// The API server has another version of it.
	r := &Reconciler{Live: liveWith(t, f.addOn, f.cluster), AddOns: addonapi.Client{}}
	stale, err := isStale(r.stale(t.Context(), f, plan{works: planned.steps}))
	require.NoError(t, err)
	assert.False(t, stale, "a user who edits it all the time would hold the add-on up")
}

// Kubernetes deletes the works of an add-on that went, and may need minutes for it. The next add-on of the name waits
// for that.
//
// Shows: hub/earlier-works
func TestWorksOfAnEarlierAddOnAreDeletedForTheNextOne(t *testing.T) {
	f := factsOf(configMap("a", 1))
	f.addOn.UID = "present"
	earlier, present := f.addOn.DeepCopy(), f.addOn.DeepCopy()
	earlier.UID = "earlier"
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"}
	work := func(name string, owners ...metav1.OwnerReference) *workv1.ManifestWork {
		return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: name, OwnerReferences: owners}}
	}
	going := work("addon-a-deploy-2", controlledBy(earlier))
	going.DeletionTimestamp = &metav1.Time{Time: f.now}
	f.works = []*workv1.ManifestWork{
		work("addon-a-deploy-0", controlledBy(earlier)), work("addon-a-deploy-1", controlledBy(earlier), other),
		going, work("addon-a-deploy-3", controlledBy(present)), work("addon-a-deploy-4", other), work("addon-a-deploy-5"),
	}
	p := decide(f)
	require.ErrorContains(t, p.worksErr, "waiting until the ManifestWorks of an earlier add-on a are gone")
	assert.Equal(t, map[string]reconcile.Verb{"c1/addon-a-deploy-0": reconcile.Delete}, verbsOf(p.works))

	stale, err := isStale((&Reconciler{Live: liveWith(t, f.addOn, f.cluster), AddOns: addonapi.Client{}}).stale(t.Context(), f, p))
	require.NoError(t, err)
	assert.False(t, stale)
	next := f.addOn.DeepCopy()
	next.UID = "next"
	stale, err = isStale((&Reconciler{Live: liveWith(t, next, f.cluster), AddOns: addonapi.Client{}}).stale(t.Context(), f, p))
	require.NoError(t, err)
	assert.True(t, stale, "the add-on in the cache is not the last one")
}

// isStale reports whether a plan is not carried out.
func isStale(d doubt, err error) (bool, error) { return d.exists(), err }
