package work_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// beyondWorkloads are manifests of the kinds that works may apply by the rights of the installation alone, apart from
// workloads: a definition, a namespace, RBAC, a class and admission.
func (e *env) beyondWorkloads() []any {
	hook := `{apiVersion: admissionregistration.k8s.io/v1, kind: %[2]s, metadata: {name: %[1]s},
		webhooks: [{name: a.%[1]s.example, sideEffects: None, admissionReviewVersions: [v1],
		clientConfig: {service: {name: s, namespace: %[1]s}},
		rules: [{apiGroups: [%[1]s.example], apiVersions: [v1], operations: [CREATE], resources: [none]}]}]}`
	return []any{
		fmt.Sprintf(widgets, e.cluster),
		fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s-more}}", e.cluster),
		fmt.Sprintf(`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: 7}`, e.cluster),
		fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s},
			rules: [{apiGroups: [%[1]s.example], resources: [widgets], verbs: [use]}]}`, e.cluster),
		fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %[1]s},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s},
			subjects: [{kind: ServiceAccount, name: default, namespace: %[1]s}]}`, e.cluster),
		fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: %s},
			rules: [{apiGroups: [%[1]s.example], resources: [widgets], verbs: [use]}]}`, e.cluster),
		fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r, namespace: %[1]s},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r},
			subjects: [{kind: ServiceAccount, name: default, namespace: %[1]s}]}`, e.cluster),
		fmt.Sprintf(hook, e.cluster, "ValidatingWebhookConfiguration"),
		fmt.Sprintf(hook, e.cluster, "MutatingWebhookConfiguration"),
	}
}

// configs gives each object of a list a strategy.
func (e *env) configs(s workv1.UpdateStrategy, list ...any) []workv1.ManifestConfigOption {
	e.Helper()
	mapper := e.RESTMapper()
	var configs []workv1.ManifestConfigOption
	for _, item := range list {
		o := e.unstructuredOf("%s", item)
		mapping, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		require.NoError(e, err)
		configs = append(configs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{
				Group: mapping.Resource.Group, Resource: mapping.Resource.Resource,
				Namespace: o.GetNamespace(), Name: o.GetName(),
			},
			UpdateStrategy: &s,
		})
	}
	return configs
}

// storedKind waits until the API server can list a kind of the test. Its controller that ends definitions lists it, too:
// where that fails because the kind's store is just being opened, the controller writes the failure into the definition,
// takes that for a write of others when it tries again, and does not come back before it resyncs, after five minutes.
func (e *env) storedKind(kind string) {
	e.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(e.cluster + ".example/v1")
	list.SetKind(kind)
	e.eventually("the API server lists "+kind, func() bool { return e.List(e.Context(), list) == nil })
}

// TestTheShippedRightsAreEnough applies what the rights of the installation are for, with nothing added to them, in two
// works that share all objects: by update and by server-side apply, with drift, so that watches and writes of both
// kinds take place, with an owner to take away when the first work goes, and with deletion when the second does.
// Shows: work/shipped-rights
func TestTheShippedRightsAreEnough(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	list := e.beyondWorkloads()
	update, apply := e.work("update", list...), e.work("apply", list...)
	apply.Spec.ManifestConfigs = e.configs(serverSide("", true), list...)
	for _, w := range []*workv1.ManifestWork{update, apply} {
		e.create(w)
		e.settled(w)
	}
	e.quiet(a)
	each := func(check func(*unstructured.Unstructured)) {
		t.Helper()
		for _, item := range list {
			check(e.live("%s", item))
		}
	}
	each(func(o *unstructured.Unstructured) {
		t.Helper()
		assert.Len(t, o.GetOwnerReferences(), 2, "%s", o.GetKind())
		// Only what is heard of is repaired.
		o.SetOwnerReferences(nil)
		require.NoError(t, e.Update(t.Context(), o))
		e.eventually("the owners of the "+o.GetKind()+" are put back", func() bool {
			return e.Get(t.Context(), client.ObjectKeyFromObject(o), o) == nil && len(o.GetOwnerReferences()) == 2
		})
	})
	e.quiet(a)

	require.NoError(t, e.Delete(t.Context(), update))
	e.gone("update")
	each(func(o *unstructured.Unstructured) {
		t.Helper()
		assert.Len(t, o.GetOwnerReferences(), 1, "%s", o.GetKind())
		assert.Nil(t, o.GetDeletionTimestamp())
	})
	e.storedKind("WidgetList")
	require.NoError(t, e.Delete(t.Context(), apply))
	e.gone("apply")
	for _, item := range list {
		o := e.unstructuredOf("%s", item)
		assert.Error(t, e.Get(t.Context(), client.ObjectKeyFromObject(o), o), "%s", o.GetKind())
	}
}
