package conversion_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/webhook"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// byConverter converts by the webhook that the tests share.
func byConverter(t *testing.T) func(*unstructured.Unstructured) {
	t.Helper()
	url := fmt.Sprintf("https://127.0.0.1:%d%s", converter.port, webhook.Path)
	conversion, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				URL: &url, CABundle: converter.authority.certificatePEM(),
			},
		},
	})
	require.NoError(t, err)
	return converting(conversion)
}

// withFields adds a field named later to schemas of a definition: at paths of one version, below spec or status.
func withFields(name string, version int, paths ...[]string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		if u.GetName() != name {
			return
		}
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		served, _ := versions[version].(map[string]any)
		for _, path := range paths {
			at := []string{"schema", "openAPIV3Schema", "properties"}
			for _, step := range path {
				if step == "[]" {
					at = append(at[:len(at)-1], "items", "properties")
					continue
				}
				at = append(at, step, "properties")
			}
			if err := unstructured.SetNestedMap(served, map[string]any{"type": "string"}, append(at, "later")...); err != nil {
				panic(err)
			}
		}
		_ = unstructured.SetNestedSlice(u.Object, versions, "spec", "versions")
	}
}

// addOnAs returns a ManagedClusterAddOn without a Go type.
func addOnAs(version, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(addonv1beta1.GroupName + "/" + version)
	u.SetKind("ManagedClusterAddOn")
	u.SetNamespace("default")
	u.SetName(name)
	u.Object["spec"] = map[string]any{}
	return u
}

// TestAFieldOfANewerDefinitionIsKeptAndFailsNoList has definitions with fields that this converter does not know: some
// of the spec in v1alpha1 only, and some of the status, also in lists, in both versions.
//
// Shows: hub/newer-fields
func TestAFieldOfANewerDefinitionIsKeptAndFailsNoList(t *testing.T) {
	ctx := t.Context()
	spec := [][]string{{"spec"}, {"spec", "configs", "[]"}}
	status := [][]string{
		{"status"}, {"status", "configReferences", "[]"}, {"status", "registrations", "[]"}, {"status", "conditions", "[]"},
	}
	deeper := []string{"status", "registrations", "[]", "kubeClient", "subject"}
	install(t, shipped(t, byConverter(t),
		withFields(addOns, 0, append(spec, append(status, []string{"status", "registrations", "[]", "subject"})...)...),
		withFields(addOns, 1, append(status, deeper)...)), createdBy(ctx, "kubectl-create"))
	for i := range 3 {
		require.NoError(t, second.admin.Create(ctx, addOnAs("v1alpha1", fmt.Sprintf("plain-%d", i))))
	}
	newer := addOnAs("v1alpha1", "newer")
	newer.Object["spec"] = map[string]any{
		"later": "1", "configs": []any{map[string]any{"group": "g", "resource": "r", "name": "n", "later": "2"}},
	}
	require.NoError(t, second.admin.Create(ctx, newer))
	newer.Object["status"] = map[string]any{
		"later": "3",
		"configReferences": []any{map[string]any{
			"group": "g", "resource": "r", "name": "n", "lastObservedGeneration": int64(1), "later": "4",
			"desiredConfig": map[string]any{"name": "n", "specHash": "h"},
		}},
		"registrations": []any{map[string]any{
			"signerName": "kubernetes.io/kube-apiserver-client", "later": "5",
			"subject": map[string]any{"user": "u", "later": "6"},
		}},
		"conditions": []any{map[string]any{
			"type": "T", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-11-01T12:00:00Z",
			"later": "7",
		}},
	}
	require.NoError(t, second.admin.Status().Update(ctx, newer))
	want := runtime.DeepCopyJSON(newer.Object)

	var list addonv1beta1.ManagedClusterAddOnList
	suite.Eventually(t, func() error { return second.admin.List(ctx, &list) })
	require.Len(t, list.Items, 4)
	there := addOnAs("v1beta1", "newer")
	require.NoError(t, second.admin.Get(ctx, client.ObjectKeyFromObject(there), there))
	assert.Contains(t, there.GetAnnotations(), names.AnnotationCarried)
	have, _, err := unstructured.NestedMap(there.Object, "status")
	require.NoError(t, err)
	assert.Equal(t, "3", have["later"])
	for name, later := range map[string]string{"configReferences": "4", "registrations": "5", "conditions": "7"} {
		elements, _, err := unstructured.NestedSlice(have, name)
		require.NoError(t, err)
		element, _ := elements[0].(map[string]any)
		assert.Equal(t, later, element["later"], name)
		if name == "registrations" {
			subject, _, _ := unstructured.NestedString(element, "kubeClient", "subject", "later")
			assert.Equal(t, "6", subject)
		}
	}

	// A user who knows v1beta1 alone changes the object, and its status.
	there.SetLabels(map[string]string{"written": "in-v1beta1"})
	require.NoError(t, second.admin.Update(ctx, there))
	require.NoError(t, unstructured.SetNestedField(there.Object, "8", "status", "later"))
	require.NoError(t, second.admin.Status().Update(ctx, there))
	require.NoError(t, second.admin.Get(ctx, client.ObjectKeyFromObject(newer), newer))
	assert.Equal(t, want["spec"], newer.Object["spec"])
	require.NoError(t, unstructured.SetNestedField(want, "8", "status", "later"))
	for _, name := range []string{"later", "configReferences", "registrations", "conditions"} {
		assert.Equal(t, field(want, "status", name), field(newer.Object, "status", name), name)
	}
	assert.NotContains(t, newer.GetAnnotations(), names.AnnotationCarried)
	assert.Equal(t, "in-v1beta1", newer.GetLabels()["written"])
}

func field(object map[string]any, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	return value
}

// TestTheStoredVersionMayChange stores objects in v1alpha1, writes them through v1beta1, makes v1beta1 the stored
// version, and writes them through both.
//
// Shows: hub/storage-upgrade
func TestTheStoredVersionMayChange(t *testing.T) {
	ctx := t.Context()
	install(t, shipped(t, byConverter(t)), createdBy(ctx, "kubectl-create"))
	old := &addonv1alpha1.ManagedClusterAddOn{Spec: addonv1alpha1.ManagedClusterAddOnSpec{
		InstallNamespace: "somewhere",
		Configs: []addonv1alpha1.AddOnConfig{{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: "g", Resource: "r"},
			ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "n"},
		}},
	}}
	old.Namespace, old.Name = "default", "old"
	management := &addonv1alpha1.ClusterManagementAddOn{Spec: addonv1alpha1.ClusterManagementAddOnSpec{
		AddOnConfiguration: addonv1alpha1.ConfigCoordinates{CRDName: "crd"},
		InstallStrategy:    addonv1alpha1.InstallStrategy{Type: addonv1alpha1.AddonInstallStrategyManual},
		SupportedConfigs: []addonv1alpha1.ConfigMeta{
			{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: "g", Resource: "without"}},
		},
	}}
	management.Name = "old"
	require.NoError(t, second.admin.Create(ctx, old))
	require.NoError(t, second.admin.Create(ctx, management))
	suite.Eventually(t, func() error { return touch(ctx, &addonv1beta1.ManagedClusterAddOn{}, "default", "old", "first") })
	require.NoError(t, touch(ctx, &addonv1beta1.ClusterManagementAddOn{}, "", "old", "first"))

	store(t, "v1beta1")
	fresh := &addonv1beta1.ManagedClusterAddOn{}
	fresh.Namespace, fresh.Name = "default", "fresh"
	fresh.Annotations = map[string]string{names.AnnotationInstallNamespace: "elsewhere"}
	require.NoError(t, second.admin.Create(ctx, fresh))
	check := func(touched string) {
		t.Helper()
		alpha, beta := &addonv1alpha1.ManagedClusterAddOn{}, &addonv1beta1.ManagedClusterAddOn{}
		require.NoError(t, second.admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: "old"}, alpha))
		require.NoError(t, second.admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: "old"}, beta))
		assert.Equal(t, old.Spec, alpha.Spec)
		assert.Empty(t, alpha.Annotations)
		assert.Equal(t, touched, alpha.Labels["touched"])
		assert.Equal(t, map[string]string{names.AnnotationInstallNamespace: "somewhere"}, beta.Annotations)
		assert.Equal(t, "n", beta.Spec.Configs[0].Name)
		require.NoError(t, second.admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: "fresh"}, alpha))
		assert.Equal(t, "elsewhere", alpha.Spec.InstallNamespace)
		cma, betaCMA := &addonv1alpha1.ClusterManagementAddOn{}, &addonv1beta1.ClusterManagementAddOn{}
		require.NoError(t, second.admin.Get(ctx, client.ObjectKey{Name: "old"}, cma))
		require.NoError(t, second.admin.Get(ctx, client.ObjectKey{Name: "old"}, betaCMA))
		assert.Equal(t, management.Spec, cma.Spec)
		assert.Empty(t, cma.Annotations)
		assert.Equal(t, addonapi.ReservedNoDefault, betaCMA.Spec.DefaultConfigs[0].Name)
	}
	check("first")

	// A write in either version moves the objects to the new one.
	require.NoError(t, touch(ctx, &addonv1alpha1.ManagedClusterAddOn{}, "default", "old", "second"))
	require.NoError(t, touch(ctx, &addonv1beta1.ClusterManagementAddOn{}, "", "old", "second"))
	check("second")
	converter.stop()
	t.Cleanup(func() {
		converter.stop()
		require.NoError(t, converter.start(context.WithoutCancel(ctx)))
	})
	require.NoError(t, touch(ctx, &addonv1beta1.ManagedClusterAddOn{}, "default", "fresh", "third"), "nothing converts")
	require.ErrorContains(t, touch(ctx, &addonv1alpha1.ManagedClusterAddOn{}, "default", "fresh", "fourth"),
		"conversion webhook")
	require.NoError(t, converter.start(ctx))
	check("second")
}

// touch changes a label of an object in the version of its type.
func touch(ctx context.Context, object client.Object, namespace, name, value string) error {
	if err := second.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return err
	}
	object.SetLabels(map[string]string{"touched": value})
	return second.admin.Update(ctx, object)
}

// store makes a version of the two converted kinds the stored one, and returns when the API server stores it.
func store(t *testing.T, version string) {
	t.Helper()
	for _, name := range []string{addOns, managements} {
		var crd apiextensionsv1.CustomResourceDefinition
		suite.Eventually(t, func() error {
			if err := second.admin.Get(t.Context(), client.ObjectKey{Name: name}, &crd); err != nil {
				return err
			}
			for i := range crd.Spec.Versions {
				crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == version
			}
			return second.admin.Update(t.Context(), &crd)
		})
		suite.Eventually(t, func() error {
			if err := second.admin.Get(t.Context(), client.ObjectKey{Name: name}, &crd); err != nil {
				return err
			}
			if stored := crd.Status.StoredVersions; len(stored) != 2 {
				return fmt.Errorf("the stored versions are %v", stored)
			}
			return nil
		})
	}
}
