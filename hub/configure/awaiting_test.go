package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// selected is an add-on on cluster c1 with two placements, of which "high" comes after "low", and other defaults.
type selected struct {
	c     *Configurer
	clock *clocktesting.FakePassiveClock
	addOn *addonv1beta1.ManagedClusterAddOn
}

// schemeOf returns the kinds that a configurer reads.
func schemeOf(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{
		addonv1alpha1.Install, addonv1beta1.Install, appsv1.AddToScheme, clusterv1beta1.Install,
	} {
		require.NoError(t, install(scheme))
	}
	return scheme
}

// newSelected returns an add-on that has the configuration of a placement; "" for none.
func newSelected(t *testing.T, has string, listed []string, objects ...client.Object) *selected {
	t.Helper()
	var placements []addonv1beta1.PlacementStrategy
	for _, name := range listed {
		placements = append(placements, fixture.Placement(name, fixture.DeploymentConfig(name)))
	}
	cma := fixture.NewCMA([]addonv1beta1.AddOnConfig{fixture.DeploymentConfig("default")}, placements...)
	objects = append(objects, addonapi.ClusterManagementAddOnToAlpha(cma))
	for _, name := range []string{"low", "high", "default"} {
		objects = append(objects, &addonv1beta1.AddOnDeploymentConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec:       addonv1beta1.AddOnDeploymentConfigSpec{AgentInstallNamespace: name},
		})
	}
	reader := fake.NewClientBuilder().WithScheme(schemeOf(t)).WithObjects(objects...).Build()
	s := &selected{clock: clocktesting.NewFakePassiveClock(fixture.Noon())}
	s.c = &Configurer{
		AddOns: addonapi.Client{Client: reader}, Client: reader, Store: &addonconfig.Store{Client: reader, Home: "home"},
		Placements: &fleet.Placements{Client: reader, Clock: s.clock},
		awaiting:   &awaiting{},
	}
	s.addOn = fixture.AddOn("c1")
	if has != "" {
		config := fixture.DeploymentConfig(has)
		states, err := s.c.Store.States(t.Context(), config)
		require.NoError(t, err)
		s.addOn = fixture.With(fixture.AddOn("c1", fixture.Has(config, states[config].Hash)), fixture.IsTrue("Configured"))
	}
	return s
}

// pass returns the names of the configurations after a pass, and what the condition says.
func (s *selected) pass(t *testing.T) ([]string, string, time.Time) {
	t.Helper()
	result, err := s.c.Configure(t.Context(), s.addOn)
	require.NoError(t, err)
	after := s.addOn.DeepCopy()
	result.Record(after, addon.Progress{Now: s.clock.Now()})
	var configs []string
	for _, reference := range addonconfig.ChosenBy(after.Status.ConfigReferences) {
		configs = append(configs, reference.Config().Name)
	}
	configured := meta.FindStatusCondition(after.Status.Conditions, "Configured")
	require.NotNil(t, configured)
	return configs, configured.Message, result.Recheck
}

// placed is a Placement with its PlacementDecision, which names clusters.
type placed struct {
	placement *clusterv1beta1.Placement
	page      *clusterv1beta1.PlacementDecision
}

func placement(name string, clusters ...string) placed {
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	page := decision(name, clusters...)
	page.Name = name + "-decision-1"
	page.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "Placement", Name: name, UID: p.UID, Controller: new(true),
	}}
	return placed{p, page}
}

// objects returns both.
func (p placed) objects() []client.Object { return []client.Object{p.placement, p.page} }

// Shows: hub/placement-in-doubt
func TestAPlacementThatIsNotDecidedLeavesConfigurationsAsTheyAre(t *testing.T) {
	partial, replaced := placement("high", "c2"), placement("high", "c2")
	partial.placement.Status.NumberOfSelectedClusters = 2
	replaced.placement.UID = "another"
	for sentence, high := range map[string][]client.Object{
		"does not exist":                     nil,
		"has no PlacementDecision":           {placement("high").placement},
		"has not decided yet":                placement("high").objects(),
		"name 1 clusters, its status says 2": partial.objects(),
		"belongs to an earlier Placement":    replaced.objects(),
	} {
		t.Run(sentence, func(t *testing.T) {
			both := append(placement("low", "c1").objects(), high...)
			s := newSelected(t, "high", []string{"low", "high"}, both...)
			configs, says, _ := s.pass(t)
			assert.Equal(t, []string{"high"}, configs, "it does not fall back to the other placement")
			assert.Contains(t, says, sentence)
			assert.Contains(t, says, "the configuration is kept as it is")
			s = newSelected(t, "high", []string{"high"}, high...)
			configs, says, _ = s.pass(t)
			assert.Equal(t, []string{"high"}, configs, "it does not fall back to the defaults")
			assert.Contains(t, says, sentence)
			s = newSelected(t, "low", []string{"low", "high"}, both...)
			configs, says, _ = s.pass(t)
			assert.Equal(t, []string{"low"}, configs)
			assert.NotContains(t, says, "kept as it is", "nothing would change")
		})
	}
	both := append(placement("low", "c1").objects(), placement("high", "c2").objects()...)
	s := newSelected(t, "high", []string{"low", "high"}, both...)
	configs, _, _ := s.pass(t)
	assert.Equal(t, []string{"low"}, configs, "one that has decided otherwise lets the cluster go")
}

func TestAPlacementThatStaysAwayKeepsOnlyWhatItSelected(t *testing.T) {
	for has, after := range map[string][]string{"high": {"high"}, "default": {"low"}} {
		s := newSelected(t, has, []string{"low", "high"}, placement("low", "c1").objects()...)
		_, says, recheck := s.pass(t)
		assert.Contains(t, says, "placement ns/high does not exist")
		assert.Equal(t, fixture.Noon().Add(fleet.FailoverPeriod), recheck)
		s.clock.SetTime(recheck)
		configs, _, recheck := s.pass(t)
		assert.Equal(t, after, configs)
		assert.Zero(t, recheck)
	}
}

func TestANewAddOnWaitsOnlyWhereItWouldGetTheDefaults(t *testing.T) {
	for sentence, tc := range map[string]struct {
		low, high []client.Object
		want      []string
	}{
		"a placement that does not exist may select its cluster too": {low: placement("low", "c1").objects(), want: []string{"low"}},
		"a placement that nobody decides may select its cluster too": {
			low: placement("low", "c1").objects(), high: []client.Object{placement("high").placement}, want: []string{"low"},
		},
		"no placement selects its cluster, and one does not exist": {low: placement("low", "c2").objects()},
		"no placement selects its cluster, and one is not decided": {
			low: placement("low", "c2").objects(), high: []client.Object{placement("high").placement}, want: []string{"default"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newSelected(t, "", []string{"low", "high"}, append(tc.low, tc.high...)...)
			configs, _, _ := s.pass(t)
			assert.Equal(t, tc.want, configs)
		})
	}
}

func TestTheLastDecisionOfAPlacementWakesWhoAwaitsIt(t *testing.T) {
	both := append(placement("low", "c1").objects(), placement("top").objects()...)
	s := newSelected(t, "low", []string{"low", "top"}, both...)
	_, _, _ = s.pass(t)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	page := s.c.wakesAwaiting(placementOfDecision)
	page.Create(t.Context(), event.CreateEvent{Object: placement("top").page}, q)
	assert.Zero(t, q.Len(), "it has not decided yet")
	top := placement("top", "c2").page
	var stored clusterv1beta1.PlacementDecision
	require.NoError(t, s.c.Client.Get(t.Context(), client.ObjectKeyFromObject(top), &stored))
	stored.Status = top.Status
	require.NoError(t, s.c.Client.Update(t.Context(), &stored))
	page.Create(t.Context(), event.CreateEvent{Object: placement("other", "c1").page}, q)
	assert.Zero(t, q.Len(), "another placement decided")
	page.Create(t.Context(), event.CreateEvent{Object: &stored}, q)
	assert.Equal(t, 1, q.Len())
	assert.Zero(t, s.c.awaiting.Len(), "its next pass says what it still awaits")
}

func TestAnotherReasonOfADoubtWakesWhoWasToldTheFirst(t *testing.T) {
	top := placement("top")
	s := newSelected(t, "low", []string{"low", "top"}, append(placement("low", "c1").objects(), top.placement)...)
	_, _, _ = s.pass(t)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	page := s.c.wakesAwaiting(placementOfDecision)
	require.NoError(t, s.c.Client.Create(t.Context(), top.page))
	page.Create(t.Context(), event.CreateEvent{Object: top.page}, q)
	assert.Equal(t, 1, q.Len(), "it was told that there is no PlacementDecision")
}
