package addonapi

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// The add-on was created by kubectl apply, so its one annotation is not in the cache. Its agent writes the status all the
// time.
func TestARecordOnAnAppliedAddOnIsWrittenWhileTheAgentWritesTheStatus(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	beta := fixture.AddOn("c1")
	beta.UID, beta.Name = "u", "a"
	object := AddOnToAlpha(beta)
	object.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
	cl := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).WithStatusSubresource(object).Build()
	key, n := client.ObjectKeyFromObject(object), 0
	agentWrites := func() {
		live := &addonv1alpha1.ManagedClusterAddOn{}
		require.NoError(t, cl.Get(t.Context(), key, live))
		n++
		live.Status.Namespace = string(rune('a' + n))
		require.NoError(t, cl.Status().Update(t.Context(), live))
	}
	busy := interceptor.NewClient(cl, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			agentWrites()
			err := c.Patch(ctx, o, p, opts...)
			if err != nil && p.Type() == types.JSONPatchType { // what an API server answers to a failed test
				return apierrors.NewGenericServerResponse(422, "patch", schema.GroupResource{}, o.GetName(), err.Error(), 0, false)
			}
			return err
		},
	})
	c := Client{Client: busy}
	var err error
	for range 5 {
		cached := &addonv1alpha1.ManagedClusterAddOn{}
		require.NoError(t, cl.Get(t.Context(), key, cached))
		delete(cached.Annotations, corev1.LastAppliedConfigAnnotation) // hubprocess.Trims.AddOn
		before := AddOnToBeta(cached)
		after := before.DeepCopy()
		after.Annotations = map[string]string{names.AnnotationHookAttempts: "x"}
		if _, err = c.PatchAddOn(t.Context(), before, after); err == nil {
			break
		}
	}
	assert.NoError(t, err, "the hub never records it")
}
