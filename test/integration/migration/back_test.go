package migration_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// runtimeObject holds what meta.EachListItem hands out.
type runtimeObject = runtime.Object

// nothingBlocks looks for what of ours could still refuse a request, and for what only our hub manager used.
func nothingBlocks(t *testing.T) {
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyList"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBindingList"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfigurationList"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfigurationList"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleList"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBindingList"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		require.NoError(t, plane.Client.List(t.Context(), list))
		for _, u := range list.Items {
			assert.NotContains(t, u.GetName(), "spokelet", gvk.Kind)
		}
	}
	for name, o := range map[string]client.Object{
		names.ServiceAccountManager: &corev1.ServiceAccount{}, names.SecretWebhook: &corev1.Secret{},
		"spokelet-hub-webhook": &corev1.Service{},
	} {
		err := plane.Client.Get(t.Context(), client.ObjectKey{Namespace: hubNamespace, Name: name}, o)
		assert.True(t, apierrors.IsNotFound(err), "%T %s: %v", o, name, err)
	}
	require.NoError(t, plane.Client.Get(t.Context(),
		client.ObjectKey{Namespace: hubNamespace, Name: names.ServiceAccountAddons}, &corev1.ServiceAccount{}))
	require.NoError(t, plane.Client.Get(t.Context(),
		client.ObjectKey{Name: "open-cluster-management:managedcluster:work"}, &rbacv1.ClusterRole{}), "clusters need it")

	// Nobody converts add-ons now, so they are served as they are stored, and what the API server itself does goes on.
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{
		Group: addonv1alpha1.GroupName, Version: "v1beta1", Kind: "ManagedClusterAddOnList",
	})
	suite.Eventually(t, func() error {
		err := plane.Client.List(t.Context(), list)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		return notYet("%v", err)
	})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lonely"}}
	require.NoError(t, plane.Client.Delete(t.Context(), namespace))
	gone(t, namespace)
}

// ocmWorks has OCM's programs write what they write.
func ocmWorks(t *testing.T) {
	manager, registration := as(t, "addon-manager-controller-sa", "addon"), as(t, "registration-controller-sa", "registration")
	suite.Eventually(t, func() error {
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c3", Name: "of-ocm"}}
		work.Spec.Workload.Manifests = manifest(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`)
		return client.IgnoreAlreadyExists(manager.Create(t.Context(), work))
	})
	var cluster clusterv1.ManagedCluster
	require.NoError(t, registration.Get(t.Context(), client.ObjectKey{Name: "c3"}, &cluster))
	cluster.Spec.Taints = []clusterv1.Taint{{
		Key: clusterv1.ManagedClusterTaintUnreachable, Effect: clusterv1.TaintEffectNoSelect,
		TimeAdded: metav1.NewTime(time.Now().Add(-time.Hour)),
	}}
	cluster.Labels[setLabel] = "another"
	require.NoError(t, registration.Update(t.Context(), &cluster))
	fresh := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c4", Labels: map[string]string{setLabel: "default"}}}
	require.NoError(t, registration.Create(t.Context(), fresh))
	fresh.Spec.HubAcceptsClient = true
	require.NoError(t, registration.Update(t.Context(), fresh))
	createWork(t, plane.Client, "c2", "of-a-person")
}

// deleteAll deletes clusters, add-ons and works. Nobody but OCM is there to take finalizers off, and it knows only its
// own.
func deleteAll(t *testing.T) {
	lists := []client.ObjectList{
		&addonv1alpha1.ManagedClusterAddOnList{}, &workv1.ManifestWorkList{}, &clusterv1.ManagedClusterList{},
		&rbacv1.RoleBindingList{},
	}
	known := []string{
		apiCleanup, clusterCleanup, workCleanup, preDelete, hostedCleanup, "cluster.open-cluster-management.io/addon-pre-delete",
		"addon.open-cluster-management.io/hosting-addon-pre-delete",
	}
	suite.Eventually(t, func() error {
		left := 0
		for _, list := range lists {
			require.NoError(t, plane.Client.List(t.Context(), list))
			require.NoError(t, meta.EachListItem(list, func(o runtime.Object) error {
				object, isObject := o.(client.Object)
				require.True(t, isObject)
				if strings.HasPrefix(object.GetNamespace(), "kube-") {
					return nil
				}
				left++
				for _, finalizer := range object.GetFinalizers() {
					assert.True(t, slices.Contains(known, finalizer), "%T %s has finalizer %s", o, object.GetName(), finalizer)
				}
				if err := plane.Client.Delete(t.Context(), object); client.IgnoreNotFound(err) != nil {
					return err
				}
				if len(object.GetFinalizers()) > 0 {
					patch(t, object, `{"metadata":{"finalizers":null}}`)
				}
				return nil
			}))
		}
		if left > 0 {
			return notYet("%d objects are left", left)
		}
		return nil
	})
}
