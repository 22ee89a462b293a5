package addonapi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

func TestAClusterManagementAddOnIsFoundByItsPlacements(t *testing.T) {
	cma := &addonv1beta1.ClusterManagementAddOn{}
	for _, name := range []string{"p", "q"} {
		cma.Spec.InstallStrategy.Placements = append(cma.Spec.InstallStrategy.Placements, addonv1beta1.PlacementStrategy{
			PlacementRef: addonv1beta1.PlacementRef{Namespace: "ns", Name: name},
		})
	}
	cma.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyPlacements
	want := []string{PlacementKey("ns", "p"), PlacementKey("ns", "q")}
	assert.Equal(t, want, placementKeys(cma))
	assert.Equal(t, want, placementKeys(ClusterManagementAddOnToAlpha(cma)))
	cma.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyManual
	assert.Empty(t, placementKeys(cma), "placements of an add-on that people install do not count")
	assert.Empty(t, placementKeys(&addonv1alpha1.ManagedClusterAddOn{}))
}

func TestAPlacementDecisionIsFoundByItsClusters(t *testing.T) {
	decision := &clusterv1beta1.PlacementDecision{}
	decision.Status.Decisions = []clusterv1beta1.ClusterDecision{{ClusterName: "a"}, {ClusterName: "b"}}
	assert.Equal(t, []string{"a", "b"}, SelectedClusters(decision))
	assert.Empty(t, SelectedClusters(&clusterv1beta1.Placement{}))
}

func TestWhoseABindingIs(t *testing.T) {
	const addOn, cluster, template = names.LabelAddonName, names.LabelClusterName, names.LabelAddonTemplate
	for sentence, tc := range map[string]struct {
		labels      map[string]string
		owner       string
		own, shared []string
	}{
		"that of an add-on in the namespace of its cluster": {map[string]string{addOn: "a", template: ""}, "ManagedClusterAddOn", []string{"ns/a"}, nil},
		"that of one cluster elsewhere":                     {map[string]string{addOn: "a", template: "", cluster: "c1"}, "ClusterManagementAddOn", []string{"c1/a"}, nil},
		"that of all clusters":                              {map[string]string{addOn: "a", template: ""}, "ClusterManagementAddOn", []string{"ns/a"}, []string{"a"}},
		"that of all clusters without an owner":             {map[string]string{addOn: "a", template: ""}, "", []string{"ns/a"}, []string{"a"}},
		"one that lost a label, to be repaired":             {map[string]string{addOn: "a"}, "", []string{"ns/a"}, []string{"a"}},
		"that of a cluster":                                 {map[string]string{cluster: "c1"}, "", nil, nil},
		"that of somebody else":                             {nil, "", nil, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", Labels: tc.labels}}
			if tc.owner != "" {
				binding.OwnerReferences = []metav1.OwnerReference{{Kind: tc.owner, Name: "a"}}
			}
			assert.Equal(t, tc.own, BindingKeys(binding))
			assert.Equal(t, tc.shared, SharedBindingKeys(binding))
		})
	}
}

func TestTheDriverIsReadWithoutAConversion(t *testing.T) {
	kube := func(driver string) addonv1beta1.RegistrationConfig {
		return addonv1beta1.RegistrationConfig{
			Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{Driver: driver},
		}
	}
	custom := addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: "s.io/s"},
	}
	for sentence, tc := range map[string]struct {
		registrations []addonv1beta1.RegistrationConfig
		want          bool
	}{
		"none":                      {nil, false},
		"another driver":            {[]addonv1beta1.RegistrationConfig{kube("csr")}, false},
		"no driver yet":             {[]addonv1beta1.RegistrationConfig{kube("")}, false},
		"this one":                  {[]addonv1beta1.RegistrationConfig{custom, kube("token")}, true},
		"a custom signer":           {[]addonv1beta1.RegistrationConfig{custom}, false},
		"a kube client that is nil": {[]addonv1beta1.RegistrationConfig{{Type: addonv1beta1.KubeClient}}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := &addonv1beta1.ManagedClusterAddOn{Status: addonv1beta1.ManagedClusterAddOnStatus{
				Registrations: tc.registrations, Conditions: []metav1.Condition{{Type: "T"}},
			}}
			wire := AddOnToAlpha(a)
			assert.Equal(t, tc.want, HasDriver(a, "token"))
			assert.Equal(t, tc.want, HasDriver(wire, "token"))
			assert.Equal(t, a.Status.Conditions, Conditions(a))
			assert.Equal(t, a.Status.Conditions, Conditions(wire))
		})
	}
	assert.False(t, HasDriver(&addonv1alpha1.ClusterManagementAddOn{}, ""))
	assert.Nil(t, Conditions(&addonv1alpha1.ClusterManagementAddOn{}))
}
