package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// configuring returns a configurer of a hub with Placement low, which selects cluster c1, and a configuration.
func configuring(
	t *testing.T, cma *addonv1beta1.ClusterManagementAddOn, config client.Object,
	admission func(metav1.Object, []addonv1beta1.ConfigReference) addonconfig.Admission,
) (*Configurer, client.Client, *clocktesting.FakePassiveClock) {
	t.Helper()
	objects := append(placement("low", "c1").objects(), addonapi.ClusterManagementAddOnToAlpha(cma), config)
	hub := fake.NewClientBuilder().WithScheme(schemeOf(t)).WithObjects(objects...).Build()
	clock := clocktesting.NewFakePassiveClock(fixture.Noon())
	return &Configurer{
		AddOns: addonapi.Client{Client: hub}, Client: hub, Store: &addonconfig.Store{Client: hub, Home: "home"},
		Placements: &fleet.Placements{Client: hub, Clock: clock},
		awaiting:   &awaiting{}, Admission: admission,
	}, hub, clock
}

// A rollout (Progressive) is under way to the next content of an AddOnDeploymentConfig, and cluster c1 is not its turn.
// A ConfigMap, which the hub manager does not read and of which nobody has reported a hash yet, is named as well: by the
// placement, for all clusters, or by the add-on of one.
//
// Shows: hub/rollout-unknown-hash
func TestAnUnknownHashDoesNotBringTheRestOfTheTargetPastTheRollout(t *testing.T) {
	rolled, unread := fixture.DeploymentConfig("rolled"), fixture.ConfigMap("c")
	for sentence, tc := range map[string]struct {
		byPlacement, own []addonv1beta1.AddOnConfig
		granted          bool
	}{
		"the rollout admits it":          {byPlacement: []addonv1beta1.AddOnConfig{rolled, unread}, granted: true},
		"control: nothing else is named": {byPlacement: []addonv1beta1.AddOnConfig{rolled}},
		"the placement names it":         {byPlacement: []addonv1beta1.AddOnConfig{rolled, unread}},
		"the add-on of the cluster does": {
			byPlacement: []addonv1beta1.AddOnConfig{rolled}, own: []addonv1beta1.AddOnConfig{unread},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			cma := fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive},
				fixture.Placement("low", tc.byPlacement...)))
			of := func(text string) *addonv1beta1.AddOnDeploymentConfig {
				return &addonv1beta1.AddOnDeploymentConfig{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "rolled", UID: types.UID("rolled")},
					Spec:       addonv1beta1.AddOnDeploymentConfigSpec{AgentInstallNamespace: text},
				}
			}
			admitted := 0
			c, hub, clock := configuring(t, cma, of("old"), func(metav1.Object, []addonv1beta1.ConfigReference) addonconfig.Admission {
				admitted++
				return addonconfig.Admission{Granted: tc.granted, Reason: "waits until 1 of 3000 clusters is done"}
			})
			states, err := c.Store.States(t.Context(), rolled)
			require.NoError(t, err)
			old := states[rolled].Hash
			addOn := fixture.With(fixture.AddOn("c1", fixture.Has(rolled, old)), fixture.IsTrue("Configured"))
			addOn.Spec.Configs = tc.own
			// The content that the cluster has is stored, as a rollout leaves it.
			require.NoError(t, c.Store.Keep(t.Context(), "hello", addonconfig.ChosenBy(addOn.Status.ConfigReferences)[0]))
			// The next content.
			next := of("next")
			live := &addonv1beta1.AddOnDeploymentConfig{}
			require.NoError(t, hub.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "rolled"}, live))
			live.Spec = next.Spec
			require.NoError(t, hub.Update(t.Context(), live))

			result, err := c.Configure(t.Context(), addOn)
			require.NoError(t, err)
			require.NotZero(t, admitted, "the rollout was asked")
			want := old
			if tc.granted {
				states, err = c.Store.States(t.Context(), rolled)
				require.NoError(t, err)
				want = states[rolled].Hash
				require.NotEqual(t, want, old)
			}
			assert.Equal(t, tc.granted, result.Admitted, "it is recorded before anything is written")
			for _, config := range result.Choice.Configs {
				if config.ConfigGroupResource == rolled.ConfigGroupResource {
					assert.Equal(t, want, config.SpecHash, "from this content the works are rendered")
				}
			}
			after := addOn.DeepCopy()
			result.Record(after, addon.Progress{Now: clock.Now()})
			named := map[addonv1beta1.ConfigGroupResource]bool{}
			for _, reference := range after.Status.ConfigReferences {
				named[reference.ConfigGroupResource] = true
				if reference.ConfigGroupResource == rolled.ConfigGroupResource {
					assert.Equal(t, want, reference.DesiredConfig.SpecHash)
					kept, err := c.Store.Kept(t.Context(), "hello", addonconfig.ChosenBy([]addonv1beta1.ConfigReference{reference})[0])
					require.NoError(t, err)
					assert.NotNil(t, kept, "a later edit must not lose what the cluster has")
				}
			}
			assert.Equal(t, tc.granted, named[unread.ConfigGroupResource], "until its turn a cluster keeps what it has")
		})
	}
}
