package work_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAStatusThatSomebodyClearedComesBack(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("one", map[string]string{"k": "v"}))
	e.create(w)
	e.settled(w)
	e.quiet(a)

	before := w.DeepCopy()
	w.Status = workv1.ManifestWorkStatus{}
	require.NoError(t, e.Status().Patch(t.Context(), w, client.MergeFrom(before)))
	e.settled(w)
	assert.Equal(t, before.Status.ResourceStatus.Manifests[0].ResourceMeta, w.Status.ResourceStatus.Manifests[0].ResourceMeta)
}

func TestAListThatSomebodyEmptiedComesBack(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	w := e.work("w", e.configMap("one", nil), e.configMap("two", nil))
	e.create(w)
	e.settled(w)
	e.quiet(a)

	record := e.applied()
	before := record.DeepCopy()
	record.Status.AppliedResources = nil
	require.NoError(t, e.Status().Patch(t.Context(), record, client.MergeFrom(before)))
	e.eventually("the list to be there again", func() bool { return len(e.applied().Status.AppliedResources) == 2 })
	assert.Equal(t, before.Status.AppliedResources, e.applied().Status.AppliedResources)

	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = w.Spec.Workload.Manifests[:1] })
	e.eventually("what left the work to be deleted", func() bool {
		return len(e.applied().Status.AppliedResources) == 1
	})
}

// TestADefinitionThatGoesAndComesAgain removes the definition of an object that was applied. The work says so in the
// words of OCM, at once, and the object is back at once with the definition, watched as before.
func TestADefinitionThatGoesAndComesAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	group := e.cluster + ".example.com"
	e.create(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name: group, Labels: map[string]string{"open-cluster-management.io/aggregate-to-work": "true"},
		},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	})
	definition := func() *apiextensionsv1.CustomResourceDefinition { return fickle(group) }
	admin := define(t, definition())
	e.start()
	object := e.unstructuredOf("{apiVersion: %s/v1, kind: Fickle, metadata: {name: one, namespace: %s}, spec: {k: v}}",
		group, e.cluster)
	w := e.work("w", object, e.configMap("beside", nil))
	e.create(w)
	e.settled(w)

	require.NoError(t, admin.Delete(t.Context(), definition()))
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	e.eventually("the work to say that the kind is missing", func() bool {
		return e.Get(t.Context(), client.ObjectKeyFromObject(w), w) == nil && manifestCondition(w, 0, workv1.ManifestApplied).
			Message == `Failed to apply manifest: the server doesn't have a resource type "Fickle"`
	})
	assert.Equal(t, "IncompleteResourceMeta", manifestCondition(w, 0, workv1.ManifestAvailable).Reason)

	e.eventually("the definition to be made again", func() bool {
		err := admin.Create(t.Context(), definition())
		return err == nil || (apierrors.IsAlreadyExists(err) && e.get(object.DeepCopy(), e.cluster, "one"))
	})
	e.settled(w)
	live := object.DeepCopy()
	e.eventually("the object to be there again", func() bool { return e.get(live, e.cluster, "one") })
	require.NoError(t, e.Patch(t.Context(), live, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"k":"x"}}`))))
	e.eventually("drift to be repaired as before", func() bool {
		value, _, _ := unstructured.NestedString(live.Object, "spec", "k")
		return e.get(live, e.cluster, "one") && value == "v"
	})
}

// fickle is the definition of a kind in a group.
func fickle(group string) *apiextensionsv1.CustomResourceDefinition {
	open := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "fickles." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "fickles", Kind: "Fickle"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &open,
				}},
			}},
		},
	}
}

// define creates a definition until the end of the test, and returns an administrator of definitions.
func define(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition) client.Client {
	t.Helper()
	known := runtime.NewScheme()
	require.NoError(t, apiextensionsv1.AddToScheme(known))
	admin, err := client.New(plane.Admin(), client.Options{Scheme: known})
	require.NoError(t, err)
	require.NoError(t, admin.Create(t.Context(), definition))
	t.Cleanup(func() {
		assert.NoError(t, client.IgnoreNotFound(admin.Delete(context.WithoutCancel(t.Context()), definition)))
	})
	return admin
}
