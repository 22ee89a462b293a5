package conversion_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// unserve takes v1alpha1 of AddOnTemplates out of service.
func unserve(t *testing.T) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: templates}}
	require.NoError(t, second.admin.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`))))
	suite.Eventually(t, func() error {
		if second.admin.List(t.Context(), &addonv1alpha1.AddOnTemplateList{}) == nil {
			return errors.New("v1alpha1 is served")
		}
		return nil
	})
}

// TestTemplatesOfEitherVersionAreDeployed rolls a template out with definitions of AddOnTemplates that serve and store
// either version. The hash is the same with each of them.
//
// Shows: hub/template-versions
func TestTemplatesOfEitherVersionAreDeployed(t *testing.T) {
	hashes := map[string]bool{}
	for sentence, tc := range map[string]struct {
		edits   []func(*unstructured.Unstructured)
		written string
		// alone is set where only v1beta1 is served.
		alone bool
	}{
		"v1alpha1 alone":               {edits: edits(alphaTemplates), written: "v1alpha1"},
		"both, stored in v1alpha1":     {edits: edits(bothTemplates("v1alpha1")), written: "v1beta1"},
		"both, stored in v1beta1":      {edits: edits(bothTemplates("v1beta1")), written: "v1alpha1"},
		"both, converted by a webhook": {edits: edits(bothTemplates("v1beta1"), byConverter(t)), written: "v1beta1"},
		"v1beta1 alone":                {edits: edits(bothTemplates("v1beta1")), written: "v1beta1", alone: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			install(t, shipped(t, tc.edits...), createdBy(t.Context(), "kubectl-create"))
			if tc.alone {
				unserve(t)
			}
			hashes[deployed(t, tc.written)] = true
		})
	}
	assert.Len(t, hashes, 1, "the hash is the same in every version")
}

func edits(all ...func(*unstructured.Unstructured)) []func(*unstructured.Unstructured) { return all }

// deployed writes a template in a version, waits until its work is there, and returns the hash of the template.
func deployed(t *testing.T, version string) string {
	t.Helper()
	ctx := t.Context()
	r := runHub(t, nil)
	r.becomesReady(t)
	admin := suite.NewClient(t, second.plane.Admin())
	cluster, name := suite.UniqueName("cluster"), suite.UniqueName("hello")
	require.NoError(t, admin.Create(ctx, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}))
	suite.Eventually(t, func() error {
		return admin.Get(ctx, client.ObjectKey{Name: cluster}, &corev1.Namespace{})
	})
	template := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"addonName": name,
		"agentSpec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "hello", "namespace": "default"},
			"data": map[string]any{"text": "<hello>"},
		}}}},
	}}}
	spec := template.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(template.Object, "hello", "spec", "addonName"))
	template.SetAPIVersion(addonv1beta1.GroupName + "/" + version)
	template.SetKind("AddOnTemplate")
	template.SetName(name)
	require.NoError(t, admin.Create(ctx, template))
	require.NoError(t, unstructured.SetNestedField(spec.Object, "hello", "spec", "addonName"))
	want, err := confighash.SpecHash(spec)
	require.NoError(t, err)
	require.NoError(t, admin.Create(ctx, &addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: addonv1alpha1.ClusterManagementAddOnSpec{
			InstallStrategy: addonv1alpha1.InstallStrategy{Type: addonv1alpha1.AddonInstallStrategyManual},
			SupportedConfigs: []addonv1alpha1.ConfigMeta{{
				ConfigGroupResource: addonv1alpha1.ConfigGroupResource{
					Group: addonv1alpha1.GroupName, Resource: confighash.ResourceTemplate,
				},
				DefaultConfig: &addonv1alpha1.ConfigReferent{Name: name},
			}},
		},
	}))
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	require.NoError(t, admin.Create(ctx, addOn))
	var hash string
	suite.Eventually(t, func() error {
		var works workv1.ManifestWorkList
		err := admin.List(ctx, &works, client.InNamespace(cluster), client.MatchingLabels{names.LabelAddonName: name})
		if err := errors.Join(err, admin.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)); err != nil {
			return err
		}
		for _, reference := range addOn.Status.ConfigReferences {
			hash = reference.DesiredConfig.SpecHash
		}
		if len(works.Items) != 1 || hash == "" {
			return fmt.Errorf("there are %d works; the status is %+v", len(works.Items), addOn.Status)
		}
		return nil
	})
	assert.Equal(t, want, hash)
	return hash
}
