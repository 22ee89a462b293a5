package install

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// dropped drops clusters from their pages, as our placement does it.
func (h *pagesHub) dropped(clusters ...string) {
	h.Helper()
	gone := map[string]bool{}
	for _, name := range clusters {
		gone[name] = true
	}
	h.selectOnly(func(name string) bool { return !gone[name] })
}

func (h *pagesHub) selectOnly(selected func(string) bool) {
	h.Helper()
	pages, events := []*clusterv1beta1.PlacementDecision{}, []event.UpdateEvent{}
	number := int32(0)
	for page, cluster := range map[string]string{"p-decision-1": "c1", "p-decision-2": "c2"} {
		older := h.page(page)
		newer := older.DeepCopy()
		newer.Status.Decisions = nil
		if selected(cluster) {
			newer.Status.Decisions = []clusterv1beta1.ClusterDecision{{ClusterName: cluster}}
			number++
		}
		require.NoError(h, h.Update(h.Context(), newer))
		pages = append(pages, newer)
		events = append(events, event.UpdateEvent{ObjectOld: older, ObjectNew: newer})
	}
	var p clusterv1beta1.Placement
	require.NoError(h, h.Get(h.Context(), types.NamespacedName{Namespace: "ns", Name: "p"}, &p))
	p.Status.NumberOfSelectedClusters = number
	p.Status.Conditions = []metav1.Condition{fleet.Mark(2, pages)}
	require.NoError(h, h.Update(h.Context(), &p))
	for _, e := range events {
		h.r.ofDecision().UpdateFunc(h.Context(), e, h.q)
	}
}

// liveOf returns another hub with the same objects in the same versions.
func liveOf(t *testing.T, h *pagesHub) client.WithWatch {
	t.Helper()
	var pages clusterv1beta1.PlacementDecisionList
	var placements clusterv1beta1.PlacementList
	var clusters clusterv1.ManagedClusterList
	var cmas addonv1alpha1.ClusterManagementAddOnList
	all := fake.NewClientBuilder().WithScheme(h.Scheme())
	for _, list := range []client.ObjectList{&pages, &placements, &clusters, &cmas} {
		require.NoError(t, h.List(t.Context(), list))
		all = all.WithLists(list)
	}
	return all.Build()
}

// The cache of ManagedClusters is behind the one of PlacementDecisions. Our placement selected by what only the cache
// says of the cluster, and wrote that.
func TestClusterThatIsOnlyOtherwiseInTheCache(t *testing.T) {
	for sentence, change := range map[string]func(*clusterv1.ManagedCluster){
		"the label by which it is selected": func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{"env": "prod"} },
		"the claim by which it is selected": func(c *clusterv1.ManagedCluster) {
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "zone", Value: "a"}}
		},
		"its acceptance a moment ago": func(c *clusterv1.ManagedCluster) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
				Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(noon().Add(time.Hour)),
			})
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			h.dropped("c1")
			live := liveOf(t, h)
			var c clusterv1.ManagedCluster
			require.NoError(t, live.Get(t.Context(), types.NamespacedName{Name: "c1"}, &c))
			change(&c)
			require.NoError(t, live.Update(t.Context(), &c))
			h.r.Live = live
			h.passes(time.Hour)
			assert.Empty(t, h.removed)
		})
	}
}

// The agent of c1 writes the status of its cluster all the time, so that no version of it is ever in the cache.
func TestAnAgentKeepsNoAddOnByWritingItsStatus(t *testing.T) {
	for sentence, c := range map[string]struct {
		own, alike bool
		change     func(*clusterv1.ManagedCluster)
		want       []string
	}{
		"its version, to our placement": {own: true, alike: true, want: []string{"c1"}, change: func(c *clusterv1.ManagedCluster) {
			c.Status.Version.Kubernetes = "v1.99.0"
		}},
		"its version, to another scheduler": {want: []string{"c1"}, change: func(c *clusterv1.ManagedCluster) {
			c.Status.Version.Kubernetes = "v1.99.0"
			c.Spec.ManagedClusterClientConfigs[0].CABundle = []byte("which the cache does without")
		}},
		"claims, to another scheduler": {change: func(c *clusterv1.ManagedCluster) {
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "zone", Value: "a"}}
		}},
		"what our placement looks at": {own: true, change: func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{"env": "prod"} }},
		"that it is away": {own: true, alike: true, change: func(c *clusterv1.ManagedCluster) {
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
				Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionUnknown, Reason: "Lost",
			})
			c.Spec.Taints = []clusterv1.Taint{{Key: clusterv1.ManagedClusterTaintUnreachable, Effect: clusterv1.TaintEffectNoSelect}}
		}},
		"that it is denied": {own: true, alike: true, change: func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }},
		"another cluster":   {own: true, alike: true, change: func(c *clusterv1.ManagedCluster) { c.UID = "another" }},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, c.own, 0, func(*clusterv1beta1.Placement) {})
			if c.own {
				key := types.NamespacedName{Namespace: "ns", Name: "p"}
				h.r.Placements.Passes = &fleet.Passes{Alike: func(types.NamespacedName, *clusterv1.ManagedCluster, *clusterv1.ManagedCluster) bool {
					return c.alike
				}}
				h.r.Placements.Passes.End(key, h.r.Placements.Passes.Begin(key, h.clock.Now()))
			}
			var managed clusterv1.ManagedCluster
			require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "c1"}, &managed))
			managed.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://c1"}}
			require.NoError(t, h.Update(t.Context(), &managed))
			h.dropped("c1")
			h.r.Live = interceptor.NewClient(liveOf(t, h), interceptor.Funcs{
				Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					err := w.Get(ctx, key, o, options...)
					if managed, is := o.(*clusterv1.ManagedCluster); is && managed.Name == "c1" {
						managed.ResourceVersion += "9"
						c.change(managed)
					}
					return err
				},
			})
			h.passes(time.Hour)
			assert.Equal(t, c.want, h.removed)
		})
	}
}

// The cache of ClusterManagementAddOns is behind: it does not list a placement yet, or has another lifecycle.
func TestDefinitionThatIsOnlyOtherwiseInTheCache(t *testing.T) {
	for sentence, change := range map[string]func(*addonv1alpha1.ClusterManagementAddOn){
		"one more placement": func(cma *addonv1alpha1.ClusterManagementAddOn) {
			cma.Spec.InstallStrategy.Placements = append(cma.Spec.InstallStrategy.Placements, addonv1alpha1.PlacementStrategy{
				PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "q"},
			})
		},
		"manual installation": func(cma *addonv1alpha1.ClusterManagementAddOn) {
			cma.Spec.InstallStrategy = addonv1alpha1.InstallStrategy{Type: addonv1alpha1.AddonInstallStrategyManual}
		},
		"another manager": func(cma *addonv1alpha1.ClusterManagementAddOn) {
			cma.Annotations = map[string]string{names.AnnotationLifecycle: "self"}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			h.dropped("c1")
			live := liveOf(t, h)
			var cma addonv1alpha1.ClusterManagementAddOn
			require.NoError(t, live.Get(t.Context(), types.NamespacedName{Name: "hello"}, &cma))
			change(&cma)
			require.NoError(t, live.Update(t.Context(), &cma))
			h.r.Live = live
			h.passes(time.Hour)
			assert.Empty(t, h.removed)
		})
	}
}

// A definition was deleted and created again. The hub manager that starts has the earlier one in its cache. It gives
// all add-ons the earlier owner, and the garbage collector deletes all of them.
func TestAnAddOnIsNotGivenToAnOwnerThatIsGone(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	yes := true
	key := types.NamespacedName{Namespace: "c1", Name: "hello"}
	var addon addonv1alpha1.ManagedClusterAddOn
	require.NoError(t, h.Get(t.Context(), key, &addon))
	addon.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: ownerKind, Name: "hello", UID: "new", Controller: &yes,
		BlockOwnerDeletion: &yes,
	}}
	require.NoError(t, h.Update(t.Context(), &addon))
	h.r.Live = fake.NewClientBuilder().WithScheme(h.Scheme()).WithObjects(&addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "new"},
	}).Build()
	_, err := h.r.Reconcile(t.Context(), ctrlreconcile.Request{NamespacedName: key})
	require.NoError(t, err)
	require.NoError(t, h.Get(t.Context(), key, &addon))
	assert.Equal(t, types.UID("new"), addon.OwnerReferences[0].UID, "the owner is there; the one of the cache is not")
}

// Kubectl delete --cascade=foreground: the definition stays until the garbage collector has deleted its add-ons.
func TestAnAddOnIsNotInstalledAgainWhileItsDefinitionGoes(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.r.Live = fake.NewClientBuilder().WithScheme(h.Scheme()).WithObjects(&addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{
			Name: "hello", UID: "cma", DeletionTimestamp: &metav1.Time{Time: noon()},
			Finalizers: []string{metav1.FinalizerDeleteDependents},
		},
	}).Build()
	require.NoError(t, h.Delete(t.Context(), &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello"},
	}))
	result, err := h.r.Reconcile(t.Context(), ctrlreconcile.Request{
		NamespacedName: types.NamespacedName{Namespace: "c1", Name: "hello"},
	})
	require.NoError(t, err)
	assert.Empty(t, h.made)
	assert.True(t, result.Requeue)
}

// A user takes back what dropped thousands of clusters while their add-ons are being removed.
func TestARemovalEndsWhenItsClustersAreSelectedAgain(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.dropped("c1", "c2")
	back := false
	deletes := interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if !back {
				back = true
				defer h.selectOnly(func(string) bool { return true }) // after this delete
			}
			return c.Delete(ctx, o, options...)
		},
	})
	h.r.AddOns = addonapi.Client{Client: deletes}
	h.passes(time.Minute)
	require.True(t, back)
	assert.Equal(t, []string{"c1"}, h.removed, "c2 was selected again before its add-on was deleted")
}

// What went is forgotten with its cluster.
func TestWhatWentIsForgottenWithItsCluster(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	key := types.NamespacedName{Namespace: "c1", Name: "hello"}
	var c clusterv1.ManagedCluster
	require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "c1"}, &c))
	require.NoError(t, h.Delete(t.Context(), &c))
	h.r.ofCluster().DeleteFunc(t.Context(), event.DeleteEvent{Object: &c}, h.q)
	h.dropped("c1")
	h.passes(time.Minute)
	require.Equal(t, []string{"c1"}, h.removed)
	_, err := h.r.Reconcile(t.Context(), ctrlreconcile.Request{NamespacedName: key})
	require.NoError(t, err)
	assert.Empty(t, h.r.memory.fleets["hello"].went, "clusters with new names come and go for years")
}

// A person takes an add-on over, by taking the label off, and the cache of add-ons is behind.
func TestAnAddOnThatAPersonTookOverStays(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.dropped("c1")
	var cached addonv1alpha1.ManagedClusterAddOn
	require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "c1", Name: "hello"}, &cached))
	mine := cached.DeepCopy()
	mine.Labels = nil
	require.NoError(t, h.Update(t.Context(), mine))
	behind := interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if a, is := o.(*addonv1alpha1.ManagedClusterAddOn); is && key.Namespace == "c1" {
				cached.DeepCopyInto(a)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	h.r.AddOns = addonapi.Client{Client: behind}
	h.passes(time.Minute)
	assert.Empty(t, h.removed)
}

// The watch of clusters was cut while a cluster was away and came back, so its cache shows it available before and
// after; the decision was made while it was away. Another controller schedules, and is down.
func TestAClusterThatWasAwayWhileNobodyWatched(t *testing.T) {
	h := newPagesHub(t, false, 0, func(*clusterv1beta1.Placement) {})
	was := droppedByOthers(t, h) // It is away; this process has not seen that.
	h.passes(time.Minute)
	require.Empty(t, h.removed, "five minutes must pass")
	is := was.DeepCopy()
	is.Status.Conditions[0].LastTransitionTime = metav1.NewTime(h.clock.Now())
	is.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: h.clock.Now()}}}
	require.NoError(t, h.Update(t.Context(), is))
	h.r.ofCluster().UpdateFunc(t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: is}, h.q)
	h.passes(time.Hour)
	assert.Empty(t, h.removed, "no placement was decided since it is available again")
}

// Another controller schedules, and is down. It dropped a cluster that is not available. A person lets the Placement
// tolerate that, so that the cluster keeps its add-on: that removed it.
func TestATolerationDoesNotRemoveWhatItIsToKeep(t *testing.T) {
	h := newPagesHub(t, false, 0, func(*clusterv1beta1.Placement) {})
	h.isToBeTolerated()
	h.passes(time.Hour)
	assert.Empty(t, h.removed, "nobody has decided with the toleration yet")
}

// The built-in placement cannot end a pass, for days. Nothing about the add-on says why it stays.
func TestARemovalThatWaitsForAPlacementForLongIsTold(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	recorder := events.NewFakeRecorder(100)
	h.r.Recorder, h.r.Placements.Passes = recorder, &fleet.Passes{}
	h.dropped("c1")
	h.passes(time.Hour)
	require.Empty(t, h.removed)
	require.Len(t, recorder.Events, 1, "an Event AddOnKept")
}

// A hub manager with the ClusterRole of the version before, which lacks get: an add-on that a person deleted.
func TestWithoutTheRightToReadDefinitions(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.r.Live = interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "clustermanagementaddons"}, "hello", nil)
		},
	})
	require.NoError(t, h.Delete(t.Context(), &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello"},
	}))
	_, err := h.r.Reconcile(t.Context(), ctrlreconcile.Request{NamespacedName: types.NamespacedName{Namespace: "c1", Name: "hello"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"c1"}, h.made)
}

// The agent of c2 says that its cluster is available and that it is not, in turns, so that the page of c2 is written all
// the time. "Changes of other clusters hold up nothing" (ADR 0019).
func TestAClusterThatComesAndGoesKeepsNoAddOnOnAnother(t *testing.T) {
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	h.dropped("c1")
	for range 20 {
		h.dropped("c1", "c2")
		h.passes(1500 * time.Millisecond)
		h.dropped("c1")
		h.passes(1500 * time.Millisecond)
	}
	assert.Equal(t, []string{"c1"}, h.removed, "it is unselected for a minute, and c2 never for three seconds")
}

// The agent of c1 writes the status of its add-on all the time, so that no version of it is ever in the cache.
func TestAnAgentKeepsNoAddOnByWritingTheStatusOfTheAddOn(t *testing.T) {
	for sentence, c := range map[string]struct {
		change func(*addonv1alpha1.ManagedClusterAddOn)
		want   []string
	}{
		"its status":                {func(*addonv1alpha1.ManagedClusterAddOn) {}, []string{"c1"}},
		"a person takes it over":    {func(a *addonv1alpha1.ManagedClusterAddOn) { a.Labels = nil }, nil},
		"it has another owner":      {func(a *addonv1alpha1.ManagedClusterAddOn) { a.OwnerReferences = []metav1.OwnerReference{{UID: "x"}} }, nil},
		"it is another one":         {func(a *addonv1alpha1.ManagedClusterAddOn) { a.UID = "another" }, nil},
		"a person writes the spec":  {func(a *addonv1alpha1.ManagedClusterAddOn) { a.Generation++ }, nil},
		"a person writes a comment": {func(a *addonv1alpha1.ManagedClusterAddOn) { a.Annotations = map[string]string{"a": "b"} }, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			h.dropped("c1")
			version := 1000
			h.r.AddOns.Client = interceptor.NewClient(h.WithWatch, interceptor.Funcs{
				Delete: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.DeleteOption) error {
					var with client.DeleteOptions
					with.ApplyOptions(options)
					if got := with.Preconditions.ResourceVersion; got != nil && *got != strconv.Itoa(version) {
						return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), nil)
					}
					return w.Delete(ctx, o)
				},
			})
			h.r.Live = interceptor.NewClient(h.WithWatch, interceptor.Funcs{
				Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					err := w.Get(ctx, key, o, options...)
					if addOn, is := o.(*addonv1alpha1.ManagedClusterAddOn); is {
						addOn.ResourceVersion = strconv.Itoa(version)
						version++ // The agent writes again before the deletion.
						c.change(addOn)
					}
					return err
				},
			})
			h.passes(time.Hour)
			assert.Equal(t, c.want, h.removed)
		})
	}
}
