package deploy

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// As TestNoObjectIsDeletedByAnEarlierCopyOfItsCluster, for all that addon.ClusterFact may use.
//
// Shows: hub/removed-when-confirmed
func TestNoObjectIsDeletedByAnEarlierAnnotationOfItsCluster(t *testing.T) {
	for sentence, set := range map[string]func(*clusterv1.ManagedCluster){
		"control: a label":          func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{"gpu": "yes"} },
		"an annotation of a person": func(c *clusterv1.ManagedCluster) { c.Annotations = map[string]string{"example.com/gpu": "yes"} },
		"a claim": func(c *clusterv1.ManagedCluster) {
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "gpu", Value: "yes"}}
		},
		"the version of Kubernetes": func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "v1.35.0" },
	} {
		t.Run(sentence, func(t *testing.T) {
			f := factsOf(configMap("always", 1), configMap("for-some-clusters", 1))
			set(f.cluster)
			f, _ = simulate(t, f)
			live := liveWith(t, f.addOn, f.cluster)
			cached := f
			cached.cluster = f.cluster.DeepCopy()
			cached.cluster.Labels, cached.cluster.Annotations, cached.cluster.ResourceVersion = nil, nil, "earlier"
			cached.cluster.Status = clusterv1.ManagedClusterStatus{}
			require.False(t, addon.SameFacts(cached.cluster, f.cluster))
			cached.rendering.Objects = f.rendering.Objects[:1]
			planned, err := planWorks(cached)
			require.NoError(t, err)
			r := &Reconciler{Live: live, AddOns: addonapi.Client{}}
			stale, err := isStale(r.stale(t.Context(), cached, plan{works: planned.steps}))
			require.NoError(t, err)
			assert.True(t, stale, "it loses %v, by a copy of cluster c1 that the API server does not have any more", lost(planned.steps))
		})
	}
}

// hookedByLabel has its hook, and an object, on clusters with a label only.
type hookedByLabel struct{ permitted }

func (h hookedByLabel) Agent(context.Context, string) (addon.Agent, bool, error) { return h, true, nil }

func (hookedByLabel) Resolve(context.Context, addon.Request) (addon.Resolved, error) {
	return addon.Resolved{}, nil
}

func (h hookedByLabel) Render(_ context.Context, request addon.Request) (addon.Rendering, error) {
	var r addon.Rendering
	r.Objects = append(r.Objects, configMap("there", 1))
	if request.Cluster.Labels["gpu"] == "yes" {
		r.Objects = append(r.Objects, hookJob())
	}
	return r, nil
}

// The author has a hook for clusters with a label, and the cache has the cluster as it was before the label.
//
// Shows: hub/removed-when-confirmed
func TestNoPreDeleteHookIsSkippedByAnEarlierCopyOfItsCluster(t *testing.T) {
	now, earlier := clusterThatIs("c1", true), clusterThatIs("c1", true)
	now.Labels = map[string]string{"gpu": "yes"}
	for sentence, cached := range map[string]*clusterv1.ManagedCluster{"control": now, "earlier": earlier} {
		t.Run(sentence, func(t *testing.T) {
			leaving := addOnAt("c1")
			leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Unix(990, 0)), []string{finalizerHook}
			cache := cacheOrHub(t, interceptor.Funcs{}, leaving, ownNamespace("c1"), cached)
			live := cacheOrHub(t, interceptor.Funcs{}, leaving, ownNamespace("c1"), now)
			_, err := behindIn(cache, live, hookedByLabel{}).Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
			t.Log("pass:", err)
			after := &addonv1alpha1.ManagedClusterAddOn{}
			err = cache.Get(t.Context(), client.ObjectKeyFromObject(leaving), after)
			if assert.NoError(t, err, "the add-on is gone, and its pre-delete hook never ran") {
				assert.Equal(t, leaving.Finalizers, after.Finalizers)
			}
		})
	}
}

// more has a hook on every cluster, and one more object where the cluster has a label.
type more struct{ hookedByLabel }

func (h more) Agent(context.Context, string) (addon.Agent, bool, error) { return h, true, nil }

func (h more) Render(_ context.Context, request addon.Request) (addon.Rendering, error) {
	var r addon.Rendering
	r.Objects = append(r.Objects, configMap("there", 1), hookJob())
	if request.Cluster.Labels["gpu"] == "yes" && request.AddOn.Annotations["addon.open-cluster-management.io/values"] == "new" {
		r.Objects = append(r.Objects, configMap("more", 1))
	}
	return r, nil
}

// The pre-delete hook runs; what it needs stays until it has.
//
// Shows: hub/removed-when-confirmed
func TestNoObjectIsDeletedWhileAHookRunsByWhatOnlyTheCacheSays(t *testing.T) {
	for sentence, behind := range map[string]struct{ cluster, addOn bool }{
		"control": {}, "the cluster": {cluster: true}, "the add-on": {addOn: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			now := clusterThatIs("c1", true)
			now.Labels = map[string]string{"gpu": "yes"}
			leaving := addOnAt("c1")
			leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Unix(990, 0)), []string{finalizerHook}
			leaving.Annotations = map[string]string{"addon.open-cluster-management.io/values": "new"}
			wire := addonapi.AddOnToBeta(leaving)
			f := factsOf(configMap("there", 1), configMap("more", 1), hookJob())
			f.addOn, f.cluster = wire, now
			f, _ = simulate(t, f)
			d, err := works.Divide(f.rendering.Objects, false)
			require.NoError(t, err)
			hook := works.HookWork(setOf(f, works.Managed, works.PreDelete), d.Hooks[works.Managed])
			hook.UID = "h"
			objects := []client.Object{ownNamespace("c1"), hook}
			for _, w := range f.works {
				objects = append(objects, w)
			}
			cachedCluster, cachedAddOn := now.DeepCopy(), leaving.DeepCopy()
			if behind.cluster {
				cachedCluster.Labels = nil
			}
			if behind.addOn {
				cachedAddOn.Annotations["addon.open-cluster-management.io/values"] = "old"
			}
			cache := cacheOrHub(t, interceptor.Funcs{}, slices.Concat(objects, []client.Object{cachedCluster, cachedAddOn})...)
			live := cacheOrHub(t, interceptor.Funcs{}, slices.Concat(objects, []client.Object{now, leaving})...)
			_, err = behindIn(cache, live, more{}).Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
			t.Log("pass:", err)
			var have []string
			for _, w := range f.works {
				after := &workv1.ManifestWork{}
				require.NoError(t, cache.Get(t.Context(), client.ObjectKeyFromObject(w), after))
				for _, id := range works.ReadAll(after) {
					have = append(have, id.Name)
				}
			}
			assert.Contains(t, have, "more", "an object is deleted on the cluster while the hook runs, by an earlier copy")
		})
	}
}

// Nobody knows what the add-on asks for. On c1 it has a RoleBinding of its own for another role that it had before.
//
// Shows: security/shared-roles
func TestAnAgentKeepsWhatItHasBesideARoleOfItsOwn(t *testing.T) {
	former := bindingOfAll() // role r in namespace shared
	own := roleBinding("shared", "c1", "a")
	own.Name = former.Name + ":cluster:c1"
	own.RoleRef.Name = "other"
	own.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: csr.AddonGroups("c1", "a")[0]}}
	for sentence, with := range map[string][]client.Object{"control": nil, "with another of its own": {own}} {
		t.Run(sentence, func(t *testing.T) {
			hub := cacheOrHub(t, interceptor.Funcs{}, append(with, addOnAt("c1"), ownNamespace("c1"), clusterThatIs("c1", true), former)...)
			r := behindIn(hub, hub, unknownAgent{})
			_, err := r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
			t.Log("pass:", err)
			var all rbacv1.RoleBindingList
			require.NoError(t, hub.List(t.Context(), &all))
			var roles []string
			for _, b := range all.Items {
				roles = append(roles, b.RoleRef.Name)
			}
			assert.Contains(t, roles, former.RoleRef.Name, "the agent lost the role, and nobody knows whether the add-on asks for it: %v", roles)
		})
	}
}

type unknownAgent struct{ permitted }

func (h unknownAgent) Agent(context.Context, string) (addon.Agent, bool, error) { return h, true, nil }

func (unknownAgent) Resolve(context.Context, addon.Request) (addon.Resolved, error) {
	return addon.Resolved{}, &addon.NotReadyError{Message: "the template is not there yet"}
}

// Cluster c1 is being deleted; the add-on has a pre-delete hook and is deleted next, by the clean-up of the cluster.
//
// Shows: security/shared-roles
func TestAnAgentOfAClusterThatGoesKeepsItsRolesForItsHook(t *testing.T) {
	going := clusterThatIs("c1", true)
	going.DeletionTimestamp, going.Finalizers = new(metav1.Unix(900, 0)), []string{"cluster.open-cluster-management.io/api-resource-cleanup"}
	addOn := addOnAt("c1")
	addOn.Finalizers = []string{finalizerHook}
	hub := cacheOrHub(t, interceptor.Funcs{}, addOn, ownNamespace("c1"), going, bindingOfAll())
	r := behindIn(hub, hub, only{})
	_, err := r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	t.Log("pass:", err)
	var all rbacv1.RoleBindingList
	require.NoError(t, hub.List(t.Context(), &all))
	assert.NotEmpty(t, all.Items, "the agent has no role for its hook")
}

// The hub manager wrote the work on the hosting cluster a moment ago; a person deletes the add-on at once. The cache has
// the deletion and not yet the work: they come by different watches.
//
// Shows: hub/removed-when-confirmed
func TestNoFinalizerGoesWhileTheCacheLacksTheWorkOnTheHost(t *testing.T) {
	for sentence, has := range map[string]bool{"control: the cache has the work": true, "the cache lacks the work": false} {
		t.Run(sentence, func(t *testing.T) {
			leaving := addOnAt("c1")
			leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Unix(990, 0)), []string{finalizerHostedObjects}
			leaving.Annotations = map[string]string{names.AnnotationHostingCluster: "host", names.AnnotationHostedOn: "host"}
			work := hostingWork("addon-a-deploy-hosting-c1-0")
			work.UID, work.Annotations = "w", map[string]string{names.AnnotationAddonUID: "mca"}
			objects := []client.Object{leaving, ownNamespace("c1"), ownNamespace("host"), clusterThatIs("c1", true), clusterThatIs("host", true)}
			hub := cacheOrHub(t, interceptor.Funcs{}, append(objects, work)...)
			behind := !has
			// Reads of works come from a cache that is behind; all else, and writes, from the hub.
			cache := interceptor.NewClient(hub, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if _, is := list.(*workv1.ManifestWorkList); is && behind {
						return nil
					}
					return c.List(ctx, list, opts...)
				},
			})
			r := behindIn(cache, hub, hooked{hosted: true})
			_, err := r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
			t.Log("pass:", err)
			behind = false // The event about the work comes, and starts a pass.
			for _, request := range ofWork(t.Context(), work) {
				_, err := r.Reconcile(t.Context(), request)
				t.Log("pass:", err)
			}
			gone := hub.Get(t.Context(), client.ObjectKeyFromObject(leaving), &addonv1alpha1.ManagedClusterAddOn{})
			stays := hub.Get(t.Context(), client.ObjectKeyFromObject(work), &workv1.ManifestWork{})
			t.Log("the add-on:", gone, "the work:", stays)
			assert.False(t, gone != nil && stays == nil, "the add-on is gone, and its work stays on the hosting cluster for ever")
		})
	}
}

// The add-on on c1 is deleted in the foreground and created again at once. On c1 the pass of the next add-on is late:
// that of c2 comes first.
//
// Shows: security/shared-roles-again
func TestAnAddOnThatIsCreatedAgainHasNoPassYet(t *testing.T) {
	for sentence, behind := range map[string]bool{"the cache is behind": true, "the cache has all": false} {
		t.Run(sentence, func(t *testing.T) {
			earlier, present := addOnAt("c1"), addOnAt("c1")
			earlier.UID, present.UID = "earlier", "present"
			earlier.DeletionTimestamp, earlier.Finalizers = new(metav1.Unix(990, 0)), []string{metav1.FinalizerDeleteDependents}
			objects := []client.Object{bindingOfAll(), ownNamespace("c1"), ownNamespace("c2"), clusterThatIs("c1", true), clusterThatIs("c2", true)}
			cache := cacheOrHub(t, interceptor.Funcs{}, slices.Concat(objects, []client.Object{earlier, addOnAt("c2")})...)
			live := cache
			if behind {
				live = cacheOrHub(t, interceptor.Funcs{}, slices.Concat(objects, []client.Object{present, addOnAt("c2")})...)
			}
			r := behindIn(cache, live, only{})
			pass := func(cluster string) {
				_, err := r.Reconcile(t.Context(), reconcile.Request(cluster, "a")[0])
				t.Log("pass:", cluster, err)
			}
			pass("c1")
			if !behind {
				was := &addonv1alpha1.ManagedClusterAddOn{}
				require.NoError(t, cache.Get(t.Context(), client.ObjectKeyFromObject(earlier), was))
				was.Finalizers = nil
				require.NoError(t, cache.Update(t.Context(), was))
				require.NoError(t, cache.Create(t.Context(), present))
			}
			pass("c2")
			var all rbacv1.RoleBindingList
			require.NoError(t, cache.List(t.Context(), &all))
			var have []string
			for _, b := range all.Items {
				have = append(have, b.Name)
			}
			former := bindingOfAll().Name
			assert.True(t, slices.Contains(have, former) || slices.Contains(have, former+":cluster:c1"),
				"the agent of the add-on that is there on c1 has no role: %v", have)
		})
	}
}

// As TestAnAgentKeepsWhatItHasBesideARoleOfItsOwn, and the agent is about to change to tokens.
//
// Shows: security/shared-roles
func TestAnAgentThatChangesToTokensKeepsWhatItHasBesideAnUnaskedRole(t *testing.T) {
	former := bindingOfAll()
	own := roleBinding("shared", "c1", "a")
	own.Name = former.Name + ":cluster:c1"
	own.RoleRef.Name = "other"
	addOn := addOnAt("c1")
	addOn.Status.KubeClientDriver = "token"
	addOn.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: "kubernetes.io/kube-apiserver-client"}}
	hub := cacheOrHub(t, interceptor.Funcs{}, own, addOn, ownNamespace("c1"), clusterThatIs("c1", true), former)
	r := behindIn(hub, hub, only{})
	_, err := r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	t.Log("pass:", err)
	var all rbacv1.RoleBindingList
	require.NoError(t, hub.List(t.Context(), &all))
	assert.NotEmpty(t, all.Items, "the agent has no role any more, neither by its certificate nor by a token")
}

// A person removed the finalizers of an earlier add-on, as the condition says; its hook work on the host stayed and was
// complete later. The present add-on is deleted before that work is.
//
// Shows: hub/earlier-works
func TestTheHookOfAnEarlierAddOnIsNotThatOfThePresentOne(t *testing.T) {
	leaving := addOnAt("c1")
	leaving.UID = "present"
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Unix(990, 0)), []string{finalizerHostedHook, finalizerHostedObjects}
	leaving.Annotations = map[string]string{names.AnnotationHostingCluster: "host", names.AnnotationHostedOn: "host"}
	f := hostedFacts("host")
	f.addOn.Name, f.addOn.UID = "a", "earlier"
	job := hookJob()
	job.SetAnnotations(map[string]string{names.AnnotationPreDelete: "", names.AnnotationHostedLocation: "hosting"})
	d, err := works.Divide(append(f.rendering.Objects[:0:0], job), true)
	require.NoError(t, err)
	hook := works.HookWork(setOf(f, works.Hosting, works.PreDelete), d.Hooks[works.Hosting])
	hook.UID = "h"
	hook.Status = hookWork(t, "True").Status
	hub := cacheOrHub(t, interceptor.Funcs{}, leaving, hook, ownNamespace("c1"), clusterThatIs("c1", true), clusterThatIs("host", true))
	_, err = behindIn(hub, hub, hooked{hosted: true}).Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	t.Log("pass:", err)
	assert.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(leaving), &addonv1alpha1.ManagedClusterAddOn{}),
		"the add-on is gone, and its own hook never ran")
}

// The cache is not behind: it keeps a part of the annotations of a cluster that was never accepted, of the same version.
//
// Shows: hub/removed-when-confirmed
func TestARoleIsTakenThoughTheHostWasNeverAccepted(t *testing.T) {
	for sentence, annotations := range map[string]map[string]string{
		"control":                         nil,
		"the host has a list of clusters": {names.AnnotationHosts: "c1"},
		"the host has image mirrors":      {names.AnnotationImageRegistries: "{}"},
	} {
		t.Run(sentence, func(t *testing.T) {
			host := clusterThatIs("host", false)
			host.Annotations = annotations
			addOn := addOnAt("c1")
			addOn.Annotations = map[string]string{names.AnnotationHostingCluster: "host"}
			unasked := roleBinding("shared", "c1", "a")
			unasked.Name, unasked.RoleRef.Name = "unasked", "other"
			hub := cacheOrHub(t, interceptor.Funcs{}, addOn, ownNamespace("c1"), clusterThatIs("c1", true), host, unasked)
			cache := interceptor.NewClient(hub, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, o, opts...)
					if cluster, is := o.(*clusterv1.ManagedCluster); is && err == nil {
						_, err = (&hubprocess.Trims{}).Cluster(cluster)
					}
					return err
				},
			})
			r := behindIn(cache, hub, only{})
			for range 5 {
				result, err := r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
				t.Logf("pass: %+v %v", result, err)
			}
			assert.Error(t, hub.Get(t.Context(), client.ObjectKeyFromObject(unasked), &rbacv1.RoleBinding{}),
				"the agent keeps a role that the add-on does not ask for any more")
		})
	}
}

// The clock of the hub manager was ten hours ahead when a hook failed, and is right again.
//
// Shows: hub/hook-retried
func TestAHookThatFailedByAClockThatWasAheadIsTriedAgainSoon(t *testing.T) {
	for sentence, ahead := range map[string]time.Duration{"control: right": -time.Second, "ten hours": 10 * time.Hour} {
		t.Run(sentence, func(t *testing.T) {
			f := leavingFacts(finalizerHook)
			f.rendering.Objects = append(f.rendering.Objects, hookJob())
			work := hookWork(t, "False")
			failed := "True"
			work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values = []workv1.FeedbackValue{{
				Name: "JobFailed", Value: workv1.FieldValue{Type: workv1.String, String: &failed},
			}}
			f.works = []*workv1.ManifestWork{work}
			require.NotEmpty(t, works.ReadHook(work).Failure)
			f.addOn.Annotations = map[string]string{names.AnnotationHookAttempts: encodeRecord(map[works.Side]attempts{
				works.Managed: {Count: 1, Work: string(work.UID), Failed: f.now.Add(ahead)},
			})}
			p := decideDeletion(f)
			deletes := slices.ContainsFunc(p.works, func(s workStep) bool { return s.Verb == reconcile.Delete })
			t.Log(p.conditions)
			if !deletes {
				assert.LessOrEqual(t, p.wake.Sub(f.now), lastPause, "the next attempt is at %s, and it is %s", p.wake.UTC(), f.now.UTC())
			}
		})
	}
}

// The hub denied the cluster; the cache has it as it was before.
//
// Shows: hub/removed-when-confirmed
func TestTheAgentOfADeniedClusterGetsNoRole(t *testing.T) {
	cache := cacheOrHub(t, interceptor.Funcs{}, addOnAt("c1"), ownNamespace("c1"), clusterThatIs("c1", true))
	live := cacheOrHub(t, interceptor.Funcs{}, addOnAt("c1"), ownNamespace("c1"), clusterThatIs("c1", false))
	_, err := behindIn(cache, live, only{}).Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	t.Log("pass:", err)
	var all rbacv1.RoleBindingList
	require.NoError(t, cache.List(t.Context(), &all))
	assert.Empty(t, all.Items, "the agent of a cluster that the hub does not accept gets a role")
}

// The agent of a cluster writes its claims all the time, so the cache never has the last ones.
//
// Shows: hub/taken-whatever-the-agent-writes
func TestARoleIsTakenThoughTheClaimsOfTheClusterChangeAllTheTime(t *testing.T) {
	of := func(value string) *clusterv1.ManagedCluster {
		cluster := clusterThatIs("c1", true)
		cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "turn", Value: value}}
		return cluster
	}
	unasked := roleBinding("shared", "c1", "a")
	unasked.Name, unasked.RoleRef.Name = "unasked", "other"
	objects := []client.Object{addOnAt("c1"), ownNamespace("c1"), unasked}
	hub := cacheOrHub(t, interceptor.Funcs{}, append(objects, of("second"))...)
	cache := interceptor.NewClient(hub, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if cluster, is := o.(*clusterv1.ManagedCluster); is {
				of("first").DeepCopyInto(cluster)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	_, err := behindIn(cache, hub, only{}).Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	require.NoError(t, err)
	assert.Error(t, hub.Get(t.Context(), client.ObjectKeyFromObject(unasked), &rbacv1.RoleBinding{}),
		"the agent keeps a role that the add-on does not ask for any more")
}
