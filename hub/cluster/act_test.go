package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/names"
)

// Shows: security/denial-comes-first
func TestADenialTakesEffectThoughTheClusterCannotBeWritten(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{clusterv1.Install, corev1.AddToScheme, rbacv1.AddToScheme} {
		require.NoError(t, install(scheme))
	}
	have := renderGrants("c1", true)
	labels := map[string]string{names.LabelClusterName: "c1"}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{ // Its agent took the finalizer.
		Name: "c1", Annotations: map[string]string{names.AnnotationAcceptedOn: "2026-03-01T11:00:00Z"},
	}}
	full := errors.New("the object is too large")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, have.role, have.binding, have.registration, have.work,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: labels}}).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption,
		) error {
			if _, ok := o.(*clusterv1.ManagedCluster); ok {
				return full
			}
			return c.Patch(ctx, o, patch, options...)
		}}).Build()
	get := func(o client.Object) error { return c.Get(t.Context(), client.ObjectKeyFromObject(o), o) }
	f := facts{name: "c1", now: noon(), cluster: cluster, have: have, namespace: &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "c1"},
	}}
	for _, o := range []client.Object{f.cluster, f.namespace, have.role, have.binding, have.registration, have.work} {
		require.NoError(t, get(o))
	}

	p := decide(f)
	require.Equal(t, phaseDenied, p.phase)
	require.NotNil(t, p.cluster, "the finalizer is wanted back")
	_, err := (&Reconciler{Client: c, Live: c}).act(t.Context(), f, p)
	require.ErrorIs(t, err, full)

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: have.role.Name}}
	require.NoError(t, get(role))
	assert.Equal(t, clusterRules("c1", false), role.Rules)
	assert.True(t, apierrors.IsNotFound(get(have.registration.DeepCopy())))
	work := have.work.DeepCopy()
	require.NoError(t, get(work), "until its works are gone")
	assert.False(t, work.DeletionTimestamp.IsZero())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	require.NoError(t, get(namespace))
	assert.NotEmpty(t, namespace.Annotations[names.AnnotationDeniedOn])
}
