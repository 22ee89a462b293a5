package addonapi

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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
		"that of an add-on in the namespace of its cluster": {map[string]string{addOn: "a", template: ""}, "ManagedClusterAddOn", nil, nil},
		"that of one cluster elsewhere":                     {map[string]string{addOn: "a", template: "", cluster: "c1"}, "ClusterManagementAddOn", []string{"c1/a"}, nil},
		"that of all clusters":                              {map[string]string{addOn: "a", template: ""}, "ClusterManagementAddOn", nil, []string{"a"}},
		"that of all clusters without an owner":             {map[string]string{addOn: "a", template: ""}, "", nil, []string{"a"}},
		"one that lost a label, to be repaired":             {map[string]string{addOn: "a"}, "", nil, []string{"a"}},
		"that of its cluster in its namespace":              {map[string]string{addOn: "a", cluster: "ns"}, "", nil, nil},
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

func TestTheBindingsOfAnAddOnOnACluster(t *testing.T) {
	binding := func(namespace, name, addOn, cluster string) client.Object {
		labels := map[string]string{names.LabelAddonName: addOn}
		if cluster != "" {
			labels[names.LabelClusterName] = cluster
		}
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	}
	c := fake.NewClientBuilder().WithIndex(&rbacv1.RoleBinding{}, IndexBinding, BindingKeys).WithObjects(
		binding("c1", "own", "a", ""), binding("c1", "named", "a", "c1"), binding("shared", "elsewhere", "a", "c1"),
		binding("c1", "of-another-add-on", "b", ""), binding("c1", "of-another-cluster", "a", "c2"),
		binding("c2", "there", "a", ""), binding("shared", "of-all", "a", ""), binding("shared", "theirs", "a", "c2"),
	).Build()
	of := func(cluster string) []string {
		bindings, err := ListBindings(t.Context(), c, types.NamespacedName{Namespace: cluster, Name: "a"})
		require.NoError(t, err)
		found := make([]string, len(bindings))
		for i, b := range bindings {
			found[i] = b.Namespace + "/" + b.Name
		}
		slices.Sort(found)
		return found
	}
	assert.Equal(t, []string{"c1/named", "c1/own", "shared/elsewhere"}, of("c1"))
	assert.Equal(t, []string{"c1/of-another-cluster", "c2/there", "shared/theirs"}, of("c2"))
}
