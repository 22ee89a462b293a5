package install

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
)

// ruledBy is a hub with some policies, and no windows.
type ruledBy struct {
	client.Reader
	all []policies.AddOnPolicy
}

func (r ruledBy) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if _, is := into.(*policies.AddOnPolicy); is {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return r.Reader.Get(ctx, key, into, opts...)
}

func (r ruledBy) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch all := list.(type) {
	case *policies.AddOnPolicyList:
		all.Items = r.all
		return nil
	case *policies.MaintenanceWindowList:
		return nil
	}
	return r.Reader.List(ctx, list, opts...)
}

func dependsOn(name, on string, installs bool) policies.AddOnPolicy {
	return policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policies.AddOnPolicySpec{
		DependsOn: []policies.Dependency{{Name: on, Install: installs}},
	}}
}

// Nothing but the API server says that gateway, which is on c1, depends on hello, or brings it along.
//
// Shows: policies/depends-behind
func TestACacheOfPoliciesThatIsBehindRemovesNoDependency(t *testing.T) {
	orders, brings := []policies.AddOnPolicy{dependsOn("gateway", "hello", false)}, []policies.AddOnPolicy{dependsOn("gateway", "hello", true)}
	for sentence, tc := range map[string]struct {
		cache, live []policies.AddOnPolicy
		removed     []string
		label       string
	}{
		"there are no policies":                            {removed: []string{"c1"}},
		"the cache has the policy":                         {cache: orders, live: orders, label: names.InstalledByPlacement},
		"the cache is behind":                              {live: orders, label: names.InstalledByPlacement},
		"the cache does not know that it is brought along": {live: brings, label: names.InstalledByPlacement},
		"it belongs to what brings it along":               {cache: brings, live: brings, label: names.InstalledByDependency},
		"not by a policy that is gone":                     {cache: brings, label: names.InstalledByPlacement},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
			require.NoError(t, h.Create(t.Context(), &addonv1alpha1.ManagedClusterAddOn{
				ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "gateway"},
			}))
			h.r.Gates = &gate.Reader{Client: ruledBy{h, tc.cache}, AddOns: h.r.AddOns}
			h.r.Live = ruledBy{h, tc.live}
			h.dropped("c1")
			h.passes(time.Hour)
			assert.Equal(t, tc.removed, h.removed)
			var left addonv1alpha1.ManagedClusterAddOn
			err := h.Get(t.Context(), client.ObjectKey{Namespace: "c1", Name: "hello"}, &left)
			require.NoError(t, client.IgnoreNotFound(err))
			assert.Equal(t, tc.label, left.Labels[names.LabelInstalledBy])
		})
	}
}

// By docs/reference/policies.md, what another add-on brought does not count for the limit "where the hub manager saw the
// last of those go that brought the add-on". network may stay for a while because of logs, which goes as well.
//
// Shows: policies/depends-follows
func TestWhatWasBroughtAlongFollowsTheLastOneThatBroughtIt(t *testing.T) {
	type step struct {
		name           string
		deleting, gone bool
	}
	goes := func(name string) []step { return []step{{name, true, false}, {name, true, true}} }
	for sentence, tc := range map[string]struct {
		steps []step
		want  bool
	}{
		"one that brings it goes":                         {goes("gateway"), true},
		"one that does not goes":                          {goes("logs"), false},
		"one that does not goes afterwards":               {append(goes("gateway"), goes("logs")...), true},
		"one that does not comes afterwards":              {append(goes("gateway"), step{name: "logs"}), true},
		"one that brings it comes afterwards":             {append(goes("gateway"), step{name: "gateway"}), false},
		"that one begins to go, and nobody saw it gone":   {append(goes("gateway"), step{name: "gateway"}, goes("gateway")[0]), false},
		"that one goes, too":                              {append(goes("gateway"), append([]step{{name: "gateway"}}, goes("gateway")...)...), true},
		"one that brings it only begins to go":            {goes("gateway")[:1], false},
		"one that brings it came, and that is all so far": {[]step{{name: "gateway"}}, false},
	} {
		r, q := bringingHub(t)
		r.memory.begin("network")
		for _, s := range tc.steps {
			o := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: s.name}}
			if s.deleting {
				o.DeletionTimestamp = new(metav1.NewTime(noon()))
			}
			r.ofDependent(t.Context(), o, s.gone, q)
		}
		assert.Equal(t, tc.want, r.memory.unselected("network")["c1"].follows, sentence)
	}
}

// Nobody defines network any more, and add-ons of the name that others brought along go.
func TestWhatWasBroughtAlongIsForgottenWithItsDefinition(t *testing.T) {
	r, q := bringingHub(t)
	o := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "network", Labels: map[string]string{
		names.LabelInstalledBy: names.InstalledByDependency,
	}}}
	r.ofDependent(t.Context(), o, true, q)
	require.True(t, r.memory.brought("network"))
	require.Equal(t, 1, q.Len())
	request, _ := q.Get()
	_, err := r.Reconcile(t.Context(), request)
	require.NoError(t, err)
	assert.Empty(t, r.memory.fleets)
}

// bringingHub is a hub where gateway brings network along, and logs depends on network without bringing it. No add-on is
// there.
func bringingHub(t *testing.T) (*Reconciler, workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	cache := fake.NewClientBuilder().WithScheme(scheme).Build()
	addOns := addonapi.Client{Client: cache}
	says := ruledBy{cache, []policies.AddOnPolicy{dependsOn("gateway", "network", true), dependsOn("logs", "network", false)}}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrlreconcile.Request]())
	t.Cleanup(q.ShutDown)
	clock := clocktesting.NewFakePassiveClock(noon())
	return &Reconciler{
		Client: cache, Live: cache, AddOns: addOns, Gates: &gate.Reader{Client: says, AddOns: addOns}, Clock: clock,
		Placements: &fleet.Placements{Client: cache, Clock: clock},
	}, q
}
