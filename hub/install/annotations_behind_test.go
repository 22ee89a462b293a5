package install

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// lateHub is a hub manager whose cache has another copy of a cluster than the API server. Its one add-on is selected.
type lateHub struct {
	*Reconciler
	// reads is how often a cluster was read from the API server.
	reads int
}

// newLateHub returns one whose add-on, where it exists, has the annotations that were copied from have.
func newLateHub(t *testing.T, exists bool, have, cached, live map[string]string) *lateHub {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(addonv1beta1.Install(scheme), clusterv1.Install(scheme),
		clusterv1beta1.Install(scheme), corev1.AddToScheme(scheme)))
	cma := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "cma"}}
	cma.Spec.InstallStrategy = addonv1beta1.InstallStrategy{
		Type: addonv1beta1.AddonInstallStrategyPlacements, Placements: []addonv1beta1.PlacementStrategy{
			{PlacementRef: addonv1beta1.PlacementRef{Namespace: "ns", Name: "p"}},
		},
	}
	page := pageOf("p", 1, "c1")
	page.Namespace, page.Labels = "ns", map[string]string{names.LabelPlacement: "p"}
	build := func(annotations map[string]string) client.WithWatch {
		objects := []client.Object{
			cma.DeepCopy(), page.DeepCopy(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: map[string]string{names.LabelClusterName: "c1"}}},
			&clusterv1.ManagedCluster{
				ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "u", Annotations: annotations},
				Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
			},
		}
		if exists {
			addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
				Namespace: "c1", Name: "hello", UID: "a",
				Labels: map[string]string{names.LabelInstalledBy: names.InstalledByPlacement},
			}}
			addOn.Annotations, _ = copied(nil, have, true)
			setOwner(addOn, cma, "")
			objects = append(objects, addOn)
		}
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
			WithIndex(&clusterv1beta1.PlacementDecision{}, addonapi.IndexCluster, addonapi.SelectedClusters).Build()
	}
	h, cache := &lateHub{}, build(cached)
	server := interceptor.NewClient(build(live), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			h.reads++
			return c.Get(ctx, key, o, opts...)
		},
	})
	clock := clocktesting.NewFakePassiveClock(noon())
	h.Reconciler = &Reconciler{
		Client: cache, Live: server, AddOns: addonapi.Client{Client: cache, Wire: addonapi.WireBeta}, Clock: clock,
		Workers: 1, TrustAsOCM: true, Placements: &fleet.Placements{Client: cache, Clock: clock},
	}
	return h
}

// pass looks at the add-on once, and returns what is copied to it then, and whether it is looked at again.
func (h *lateHub) pass(t *testing.T) (map[string]string, bool) {
	t.Helper()
	key := types.NamespacedName{Namespace: "c1", Name: "hello"}
	result, err := h.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.NoError(t, err)
	after := &addonv1beta1.ManagedClusterAddOn{}
	require.NoError(t, h.Client.Get(t.Context(), key, after))
	delete(after.Annotations, names.AnnotationCopied)
	if len(after.Annotations) == 0 {
		return nil, result.Requeue
	}
	return after.Annotations, result.Requeue
}

// The hub manager starts with an API server that is behind for clusters: it has the cluster before a person gave it
// other annotations about its add-ons, which an earlier hub manager copied, or took them from it. The add-on would move
// to another hosting cluster, where hub/deploy follows it and deletes its works from the right one, or get other values.
//
// Shows: hub/annotations-behind
func TestAnEarlierCopyOfAClusterChangesNoAddOn(t *testing.T) {
	const host = names.AnnotationHostingCluster
	present := map[string]string{names.AnnotationValues: "new", host: "host"}
	earlier := map[string]string{names.AnnotationValues: "old", host: "other"}
	for sentence, tc := range map[string]struct {
		have, cached, live map[string]string
	}{
		"it had others":                        {present, earlier, present},
		"it had none":                          {present, nil, present},
		"it had less":                          {present, map[string]string{names.AnnotationValues: "new"}, present},
		"it had some, and has none any more":   {nil, earlier, nil},
		"it had one more":                      {map[string]string{names.AnnotationValues: "new"}, present, map[string]string{names.AnnotationValues: "new"}},
		"it had others, and has third ones":    {present, earlier, map[string]string{names.AnnotationValues: "third", host: "host"}},
		"it had others, and has what is there": {earlier, present, earlier},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newLateHub(t, true, tc.have, tc.cached, tc.live)
			after, again := h.pass(t)
			assert.Equal(t, tc.have, after, "the API server does not have that copy of the cluster any more")
			assert.True(t, again, "it is a lost race")
		})
	}
}

// The cluster is read from the API server only before an add-on that exists follows it.
//
// Shows: hub/annotations-behind
func TestAClusterIsReadOnlyBeforeAnAddOnFollowsIt(t *testing.T) {
	const host = names.AnnotationHostingCluster
	before, after := map[string]string{host: "other"}, map[string]string{host: "host"}
	for sentence, tc := range map[string]struct {
		exists             bool
		have, cached, live map[string]string
		want               map[string]string
		reads              int
	}{
		"the add-on is new":                   {false, nil, after, before, after, 0},
		"the add-on has what the cluster has": {true, after, after, after, after, 0},
		"the cluster has another one now":     {true, before, after, after, after, 1},
		"the cluster has none any more":       {true, before, nil, nil, nil, 1},
		"the cluster got something that is no copy": {
			true, before, after, map[string]string{host: "host", "agent.example.com/now": "1"}, after, 1,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newLateHub(t, tc.exists, tc.have, tc.cached, tc.live)
			got, again := h.pass(t)
			assert.Equal(t, tc.want, got)
			assert.False(t, again)
			assert.Equal(t, tc.reads, h.reads)
			_, _ = h.pass(t)
			assert.Equal(t, tc.reads, h.reads, "nothing is asked when nothing changes")
		})
	}
}

// Of a cluster that was never accepted the cache has no annotations, so nothing follows from that. Its add-on is left of
// a cluster of that name that was accepted.
func TestAnAddOnDoesNotFollowAClusterThatWasNeverAccepted(t *testing.T) {
	f := with(ready(true), installed, func(f *facts) {
		f.addon.SetAnnotations(map[string]string{names.AnnotationValues: "{}", names.AnnotationCopied: "values"})
		f.managed.Spec.HubAcceptsClient = false
	})
	assert.Nil(t, decide(f).update)
	f.managed.Annotations = map[string]string{names.AnnotationAcceptedOn: "some day"}
	p := decide(f)
	require.NotNil(t, p.update, "one that was accepted once has all its annotations in the cache")
	assert.True(t, p.follows)
}

// A person deletes a definition, with which its add-ons go, and creates an add-on for the next one. The hub manager has
// the earlier definition in its cache: with that as its owner, the add-on would be deleted by the garbage collector.
//
// Shows: hub/owner-there
func TestNoAddOnGetsAnOwnerThatIsGone(t *testing.T) {
	for sentence, tc := range map[string]struct {
		live types.UID
		want bool
	}{
		"control: the definition is there": {"cma", true},
		"it is gone":                       {"", false},
		"there is another one":             {"another", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newLateHub(t, true, nil, nil, nil)
			key := types.NamespacedName{Namespace: "c1", Name: "hello"}
			var addOn addonv1beta1.ManagedClusterAddOn
			require.NoError(t, h.Client.Get(t.Context(), key, &addOn))
			addOn.Labels, addOn.OwnerReferences = nil, nil
			require.NoError(t, h.Client.Update(t.Context(), &addOn))
			live := fake.NewClientBuilder().WithScheme(h.Client.Scheme())
			if tc.live != "" {
				live = live.WithObjects(&addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: tc.live}})
			}
			h.Live = live.Build()
			_, again := h.pass(t)
			assert.Equal(t, !tc.want, again, "it is a lost race")
			require.NoError(t, h.Client.Get(t.Context(), key, &addOn))
			assert.Equal(t, tc.want, len(addOn.OwnerReferences) > 0)
		})
	}
}
