package deploy

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

func clusterThatIs(name string, accepted bool) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: accepted},
	}
}

// bindingOfAll is the binding for all clusters of the agents of add-on a.
func bindingOfAll() *rbacv1.RoleBinding {
	former := roleBinding("shared", "", "a")
	former.Subjects = []rbacv1.Subject{{
		APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: csr.AddonGroups("c1", "a")[1],
	}}
	return former
}

// hooked is an agent with a pre-delete hook and no role.
type hooked struct {
	permitted
	hosted bool
}

func (h hooked) Agent(context.Context, string) (addon.Agent, bool, error) { return h, true, nil }

func (hooked) Resolve(context.Context, addon.Request) (addon.Resolved, error) {
	return addon.Resolved{}, nil
}

func (h hooked) Render(context.Context, addon.Request) (addon.Rendering, error) {
	var r addon.Rendering
	job, there := hookJob(), configMap("there", 1)
	if h.hosted {
		job.SetAnnotations(map[string]string{names.AnnotationPreDelete: "", names.AnnotationHostedLocation: "hosting"})
		there.SetAnnotations(map[string]string{names.AnnotationHostedLocation: "hosting"})
	}
	r.Objects = append(r.Objects, there, job)
	return r, nil
}

// The hub manager starts with an API server that is behind for clusters or namespaces. An add-on with a pre-delete hook
// is being deleted; its cluster is there, accepted, and would run the hook.
func TestNoPreDeleteHookIsSkippedByWhatOnlyTheCacheSays(t *testing.T) {
	ending := ownNamespace("c1")
	ending.DeletionTimestamp, ending.Finalizers = new(metav1.Unix(900, 0)), []string{"example.com/earlier"}
	goingHost := clusterThatIs("host", true)
	goingHost.DeletionTimestamp, goingHost.Finalizers = new(metav1.Unix(900, 0)), []string{"example.com/earlier"}
	denied := clusterThatIs("c1", false)
	denied.DeletionTimestamp, denied.Finalizers = new(metav1.Unix(900, 0)), []string{"example.com/earlier"}
	c1, host, ns := clusterThatIs("c1", true), clusterThatIs("host", true), ownNamespace("c1")
	for sentence, tc := range map[string]struct {
		cached []client.Object
		hosted bool
	}{
		"control: the cache has all":                            {cached: []client.Object{c1, host, ns}},
		"control: the cache has all, hosted":                    {cached: []client.Object{c1, host, ns}, hosted: true},
		"the cluster is not in the cache yet":                   {cached: []client.Object{host, ns}},
		"an earlier cluster, never accepted, was being deleted": {cached: []client.Object{denied, host, ns}},
		"the namespace is not in the cache yet":                 {cached: []client.Object{c1, host}},
		"an earlier namespace of the cluster was being deleted": {cached: []client.Object{c1, host, ending}},
		"the hosting cluster is not in the cache yet":           {cached: []client.Object{c1, ns}, hosted: true},
		"an earlier hosting cluster was being deleted":          {cached: []client.Object{c1, ns, goingHost}, hosted: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			leaving := addOnAt("c1")
			leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Unix(990, 0)), []string{finalizerHook}
			work := hostingWork("addon-a-deploy-hosting-c1-0")
			work.UID, work.Annotations = "w", map[string]string{names.AnnotationAddonUID: "mca"}
			objects := []client.Object{leaving}
			if tc.hosted {
				leaving.Finalizers = []string{finalizerHostedHook, finalizerHostedObjects}
				leaving.Annotations = map[string]string{names.AnnotationHostingCluster: "host", names.AnnotationHostedOn: "host"}
				objects = append(objects, work)
			}
			cache := cacheOrHub(t, interceptor.Funcs{}, slices.Concat(objects, tc.cached)...)
			live := cacheOrHub(t, interceptor.Funcs{}, slices.Concat(objects, []client.Object{c1, host, ns})...)
			_, err := behindIn(cache, live, hooked{hosted: tc.hosted}).Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
			t.Log("pass:", err)
			after := &addonv1alpha1.ManagedClusterAddOn{}
			err = cache.Get(t.Context(), client.ObjectKeyFromObject(leaving), after)
			if assert.NoError(t, err, "the add-on is gone, and its pre-delete hook never ran") {
				assert.Equal(t, leaving.Finalizers, after.Finalizers)
			}
			if tc.hosted {
				assert.NoError(t, cache.Get(t.Context(), client.ObjectKeyFromObject(work), &workv1.ManifestWork{}),
					"the work on the hosting cluster is deleted before its hook")
			}
		})
	}
}

// As TestNoRoleForAllClustersIsTakenByWhatOnlyTheCacheSays: the cache is behind for clusters, not for add-ons.
func TestNoRoleForAllClustersIsTakenByAClusterThatOnlyTheCacheHas(t *testing.T) {
	going := clusterThatIs("c1", true)
	going.DeletionTimestamp, going.Finalizers = new(metav1.Unix(900, 0)), []string{"example.com/earlier"}
	for sentence, cached := range map[string][]client.Object{
		"control: the cache has the cluster":               {clusterThatIs("c1", true)},
		"the cluster is not in the cache yet":              nil,
		"the cluster was not accepted":                     {clusterThatIs("c1", false)},
		"an earlier cluster of the name was being deleted": {going},
	} {
		t.Run(sentence, func(t *testing.T) {
			objects := []client.Object{addOnAt("c1"), ownNamespace("c1"), bindingOfAll()}
			cache := cacheOrHub(t, interceptor.Funcs{}, slices.Concat(objects, cached)...)
			live := cacheOrHub(t, interceptor.Funcs{}, slices.Concat(objects, []client.Object{clusterThatIs("c1", true)})...)
			_, err := behindIn(cache, live, only{}).Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
			t.Log("pass:", err)
			var all rbacv1.RoleBindingList
			require.NoError(t, cache.List(t.Context(), &all))
			assert.NotEmpty(t, all.Items, "the agent of c1, which the hub accepts, had its role by the binding for all clusters, "+
				"and has none now")
		})
	}
}

// The add-on on c1 is deleted in the foreground, and its works wait for an agent that is away. On c2 the add-on has no
// good pass, so the binding for all clusters stays. Each write is an event that starts the next pass.
func TestTheRoleOfAnAddOnThatGoesIsNotMadeAndDeletedInTurns(t *testing.T) {
	for sentence, finalizer := range map[string]string{
		"in the foreground": metav1.FinalizerDeleteDependents,
	} {
		t.Run(sentence, func(t *testing.T) {
			leaving := addOnAt("c1")
			leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Unix(990, 0)), []string{finalizer}
			created, deleted := 0, 0
			var made *rbacv1.RoleBinding
			c := cacheOrHub(t, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					if b, is := o.(*rbacv1.RoleBinding); is {
						created++
						made = b
					}
					return c.Create(ctx, o, opts...)
				},
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					if _, is := o.(*rbacv1.RoleBinding); is {
						deleted++
					}
					return c.Delete(ctx, o, opts...)
				},
			}, bindingOfAll(), leaving, addOnAt("c2"), ownNamespace("c1"), ownNamespace("c2"), clusterThatIs("c1", true), clusterThatIs("c2", true))
			r := behindIn(c, c, only{})
			for range 10 {
				_, err := r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
				require.NoError(t, err)
			}
			if made != nil {
				assert.Empty(t, r.ofNewBinding(t.Context(), made), "the binding that a pass makes starts the next pass")
			}
			assert.LessOrEqual(t, created+deleted, 2, "in ten passes, %d RoleBindings were made and %d deleted", created, deleted)
		})
	}
}

// As TestNoRoleIsTakenByAnEarlierCopyOfItsCluster. On clusters with the label the author asks for another role of the
// kind, or for one more subject.
func TestNoRoleGivesItsPlaceToAnotherByAnEarlierCopyOfItsCluster(t *testing.T) {
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
	}
	for sentence, tc := range map[string]struct {
		live, cached addon.Permission
		verb         reconcile.Verb
	}{
		"another role": {
			live:   addon.Permission{Namespace: "c1", RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "gpu"}, Subjects: []rbacv1.Subject{user("u")}},
			cached: addon.Permission{Namespace: "c1", RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "plain"}, Subjects: []rbacv1.Subject{user("u")}},
			verb:   reconcile.Replace,
		},
		"one more subject": {
			live:   addon.Permission{Namespace: "c1", RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}, Subjects: []rbacv1.Subject{user("u"), user("gpu")}},
			cached: addon.Permission{Namespace: "c1", RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}, Subjects: []rbacv1.Subject{user("u")}},
			verb:   reconcile.Patch,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := factsOf(configMap("always", 1))
			f.setup.Permissions = []addon.Permission{tc.live}
			f.cluster.Labels = map[string]string{"gpu": "yes"}
			f, _ = simulate(t, f)
			for _, s := range decide(f).bindings {
				require.Equal(t, reconcile.Create, s.Verb)
				s.After.UID = "b"
				f.bindings = append(f.bindings, s.After)
			}
			require.Len(t, f.bindings, 1)
			live := liveWith(t, f.addOn, f.cluster)

			cached := f
			cached.cluster = f.cluster.DeepCopy()
			cached.cluster.Labels, cached.cluster.ResourceVersion = nil, "earlier"
			cached.setup.Permissions = []addon.Permission{tc.cached}
			p := decide(cached)
			require.Len(t, p.bindings, 1)
			require.Equal(t, tc.verb, p.bindings[0].Verb)
			stale, err := isStale((&Reconciler{Live: live, AddOns: addonapi.Client{}}).stale(t.Context(), cached, p))
			require.NoError(t, err)
			assert.True(t, stale, "the agent loses what it may by a copy of cluster c1 that the API server does not have any more")
		})
	}
}

// As TestNoObjectIsDeletedByAnEarlierCopyOfItsCluster, and the label is that of the hosting cluster: addon.Request has it.
func TestNoObjectIsDeletedByAnEarlierCopyOfItsHostingCluster(t *testing.T) {
	f := hostedFacts("host")
	more := configMap("for-hosts-with-a-label", 1)
	more.SetAnnotations(map[string]string{names.AnnotationHostedLocation: "hosting"})
	f.rendering.Objects = append(f.rendering.Objects, more)
	f.host.Labels = map[string]string{"gpu": "yes"}
	f, _ = simulate(t, f)
	live := liveWith(t, f.addOn, f.cluster, f.host)

	cached := f
	cached.host = f.host.DeepCopy()
	cached.host.Labels, cached.host.ResourceVersion = nil, "earlier"
	cached.rendering.Objects = f.rendering.Objects[:2]
	require.True(t, clusterDiffers(cached.host, f.host), "such a change of a hosting cluster wakes the add-ons that it hosts")
	planned, err := planWorks(cached)
	require.NoError(t, err)
	require.Equal(t, []string{"host/for-hosts-with-a-label"}, lost(planned.steps))
	r := &Reconciler{Live: live, AddOns: addonapi.Client{}}
	stale, err := isStale(r.stale(t.Context(), cached, plan{works: planned.steps}))
	require.NoError(t, err)
	assert.True(t, stale, "it loses %v, by a copy of its hosting cluster that the API server does not have any more", lost(planned.steps))
}

// The add-on has nothing on its hosting cluster but a pre-delete hook. The hub manager starts with an API server that is
// behind for clusters: the finalizer that keeps the add-on until the hook has run goes.
func TestNoFinalizerOfALivingAddOnGoesByWhatOnlyTheCacheSays(t *testing.T) {
	f := hostedFacts("host")
	job := hookJob()
	job.SetAnnotations(map[string]string{names.AnnotationPreDelete: "", names.AnnotationHostedLocation: "hosting"})
	f.rendering.Objects = append(f.rendering.Objects[:1], job)
	f.addOn.Annotations[names.AnnotationHostedOn] = "host"
	f.addOn.Finalizers = []string{finalizerHostedHook}
	f, _ = simulate(t, f)
	require.Nil(t, decide(f).finalizers, "the add-on needs its finalizer")
	live := liveWith(t, f.addOn, f.cluster, f.host)

	cached := f
	cached.host = nil
	p := decide(cached)
	stale, err := isStale((&Reconciler{Live: live, AddOns: addonapi.Client{}}).stale(t.Context(), cached, p))
	require.NoError(t, err)
	if p.finalizers != nil {
		assert.True(t, stale, "the finalizer goes, and only %v stay, by a cache that lacks the hosting cluster: who deletes the "+
			"add-on now deletes it without its hook", *p.finalizers)
	}
}

// A policy of the administrator refuses the deletion of a role that nobody asks for any more: the author of the add-on is
// told, and the rest of the pass is done.
func TestARoleThatCannotBeTakenIsTold(t *testing.T) {
	unasked := roleBinding("shared", "c1", "a")
	unasked.Name, unasked.RoleRef.Name = "unasked", "other"
	hub := cacheOrHub(t, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if o.GetName() == "unasked" {
				return errors.New("a policy refuses it")
			}
			return c.Delete(ctx, o, opts...)
		},
	}, addOnAt("c1"), ownNamespace("c1"), clusterThatIs("c1", true), unasked)
	_, _ = behindIn(hub, hub, only{}).Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	after := &addonv1alpha1.ManagedClusterAddOn{}
	require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(addOnAt("c1")), after))
	said := meta.FindStatusCondition(after.Status.Conditions, addonv1beta1.ManagedClusterAddOnRegistrationApplied)
	require.NotNil(t, said)
	assert.Contains(t, said.Message, "a policy refuses it")
}
