package reconcile

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestAKindThatIsGone(t *testing.T) {
	resource := schema.GroupResource{Resource: "xs"}
	unserved := apierrors.NewGenericServerResponse(404, "get", resource, "", "404 page not found", 0, true)
	assert.True(t, KindGone(unserved))
	assert.False(t, KindGone(apierrors.NewNotFound(resource, "x")), "an object that is missing")
	assert.False(t, KindGone(apierrors.NewGenericServerResponse(500, "get", resource, "", "fails", 0, true)))
	assert.False(t, KindGone(&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound}}))
}

func TestAKindThatIsNotServedIsNotAnAbsentObject(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	for sentence, tc := range map[string]struct {
		answer error
		absent bool
	}{
		"the object does not exist": {apierrors.NewNotFound(resource, "x"), true},
		"the kind is not served":    {apierrors.NewGenericServerResponse(404, "get", resource, "", "404 page not found", 0, true), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return tc.answer
				},
			})
			found, err := Get(t.Context(), c, types.NamespacedName{Name: "x"}, &corev1.ConfigMap{})
			assert.Nil(t, found)
			require.Equal(t, tc.absent, err == nil, "%v", err)
			assert.Equal(t, tc.absent, ObjectGone(tc.answer))
		})
	}
}

func TestOneObjectIsReadByAList(t *testing.T) {
	one, other := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	one.Namespace, one.Name, other.Namespace, other.Name = "ns", "x", "ns", "y"
	c := fake.NewClientBuilder().WithObjects(one, other).WithIndex(one, metav1.ObjectNameField,
		func(o client.Object) []string { return []string{o.GetName()} }).Build()
	for name, there := range map[string]bool{"x": true, "z": false} {
		found, err := GetListed[*corev1.ConfigMap](t.Context(), c, types.NamespacedName{Namespace: "ns", Name: name}, &corev1.ConfigMapList{})
		require.NoError(t, err)
		assert.Equal(t, there, found != nil && found.Name == name)
	}
	fails := interceptor.NewClient(c, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)
		},
	})
	_, err := GetListed[*corev1.ConfigMap](t.Context(), fails, types.NamespacedName{Name: "x"}, &corev1.ConfigMapList{})
	require.ErrorContains(t, err, "reading *v1.ConfigMap /x")
}
