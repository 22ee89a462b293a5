package manifests_test

import (
	"io/fs"
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/spokelet/spokelet/manifests"
)

// sample returns the objects of a sample, in the order of its files.
func sample(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	files, err := fs.Glob(manifests.Samples(), path.Join(name, "[0-9]*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var docs [][]byte
	for _, file := range files {
		doc, err := fs.ReadFile(manifests.Samples(), file)
		require.NoError(t, err)
		docs = append(docs, doc)
	}
	return hubObjects(t, docs)
}

// TestTheHubConfigSampleIsValid checks the definition as an API server does, and its objects against it.
func TestTheHubConfigSampleIsValid(t *testing.T) {
	var definition apiextensionsv1.CustomResourceDefinition
	var configs []*unstructured.Unstructured
	for _, u := range sample(t, "hub-config") {
		switch u.GetKind() {
		case "CustomResourceDefinition":
			definition = typed[apiextensionsv1.CustomResourceDefinition](t, u)
		case "AddOnHubConfig":
			configs = append(configs, u)
		}
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&definition)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
	definition.Status.StoredVersions = []string{"v1alpha1"}
	internal := &apiextensions.CustomResourceDefinition{}
	require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		&definition, internal, nil))
	properties := internal.Spec.Validation.OpenAPIV3Schema
	structural, err := schema.NewStructural(properties)
	require.NoError(t, err)
	assert.Empty(t, schema.ValidateStructural(nil, structural))
	validator := validate.NewSchemaValidator(structural.ToKubeOpenAPI(), nil, "", strfmt.Default)
	require.Len(t, configs, 2)
	for _, config := range configs {
		require.NoError(t, validator.Validate(config.Object).AsError(), config.GetName())
		pruned := config.DeepCopy()
		pruning.Prune(pruned.Object, structural, true)
		assert.Equal(t, config.Object, pruned.Object, "the definition has every field of the object")
	}
	assert.Equal(t, "hub-config-xxx", configs[0].GetName())
	assert.Equal(t, map[string]any{"desiredVersion": "v0.10.0"}, configs[0].Object["spec"])
	assert.Equal(t, "hub-config-yyy", configs[1].GetName())
	assert.Equal(t, map[string]any{"desiredVersion": "v0.11.0"}, configs[1].Object["spec"])
	configs[0].Object["spec"] = map[string]any{"desiredVersion": int64(10)}
	assert.Error(t, validator.Validate(configs[0].Object).AsError(), "a number is no version")
}
