package manifests_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/manifests"
)

func TestCRDs(t *testing.T) {
	assert.Equal(t, []string{
		"addondeploymentconfigs.addon.open-cluster-management.io",
		"addonpolicies.addon.spokelet.io",
		"addontemplates.addon.open-cluster-management.io",
		"clustermanagementaddons.addon.open-cluster-management.io",
		"maintenancewindows.addon.spokelet.io",
		"managedclusteraddons.addon.open-cluster-management.io",
		"managedclusters.cluster.open-cluster-management.io",
		"managedclustersetbindings.cluster.open-cluster-management.io",
		"managedclustersets.cluster.open-cluster-management.io",
		"manifestworks.work.open-cluster-management.io",
		"placementdecisions.cluster.open-cluster-management.io",
		"placements.cluster.open-cluster-management.io",
	}, definitionNames(t, manifests.CRDs()))
	assert.Equal(t, []string{
		"appliedmanifestworks.work.open-cluster-management.io",
		"clusterclaims.cluster.open-cluster-management.io",
	}, definitionNames(t, manifests.SpokeCRDs()))
}

func TestAddOnKindsAreServedInBothVersionsAndStoredInAlpha(t *testing.T) {
	seen := 0
	for _, crd := range definitions(t, manifests.CRDs()) {
		if crd.Spec.Group != "addon.open-cluster-management.io" {
			continue
		}
		seen++
		versions := map[string]bool{}
		for _, version := range crd.Spec.Versions {
			assert.True(t, version.Served, crd.Name)
			versions[version.Name] = version.Storage
		}
		assert.Equal(t, map[string]bool{"v1alpha1": true, "v1beta1": false}, versions, crd.Name)
	}
	assert.Equal(t, 4, seen)
}

func TestBothVersionsOfAddOnTemplatesHaveTheSameFields(t *testing.T) {
	for _, crd := range definitions(t, manifests.CRDs()) {
		if crd.Spec.Names.Plural != "addontemplates" {
			continue
		}
		require.Len(t, crd.Spec.Versions, 2)
		alpha, beta := crd.Spec.Versions[0], crd.Spec.Versions[1]
		assert.Equal(t, "v1alpha1", alpha.Name)
		beta.Name, beta.Storage = alpha.Name, alpha.Storage
		assert.Equal(t, alpha, beta)
		assert.Nil(t, crd.Spec.Conversion, "renaming the version is enough")
	}
}

func TestCRDsHandsOutCopies(t *testing.T) {
	first := manifests.CRDs()
	first[0][0] = '!'
	assert.NotEqual(t, byte('!'), manifests.CRDs()[0][0])
}

func definitions(t *testing.T, docs [][]byte) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, doc := range docs {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		require.NoError(t, yaml.UnmarshalStrict(doc, crd))
		all = append(all, crd)
	}
	return all
}

func definitionNames(t *testing.T, docs [][]byte) []string {
	t.Helper()
	var all []string
	for _, crd := range definitions(t, docs) {
		all = append(all, crd.Name)
	}
	return all
}
