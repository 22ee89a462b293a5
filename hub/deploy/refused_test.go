package deploy

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/addon"
)

// After a restart: the namespace ceases to be that of a cluster while a pass is between its read and the note. Its status
// says already that the permission is refused, so the pass writes nothing.
func TestANamespaceThatChangesWhileItIsReadWakesWhoReadsIt(t *testing.T) {
	var read int
	r := bindingReader(t, &read, ownNamespace("c1"), ownNamespace("other"))
	inner := r.Client.(client.WithWatch)
	var woken []ctrl.Request
	key := types.NamespacedName{Namespace: "c1", Name: "a"}
	r.Client = interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, k, o, opts...)
			if _, is := o.(*metav1.PartialObjectMetadata); is && k.Name == "other" && woken == nil {
				woken = append([]ctrl.Request{}, r.refused.requests("other")...) // as ofNamespace does
			}
			return err
		},
	})
	b, err := observeOn(t, r, "c1", "a", permitting{}, addon.Setup{Permissions: []addon.Permission{permission("other", "Role", "r")}})
	require.NoError(t, err)
	require.Error(t, b.refused)
	assert.Contains(t, woken, ctrl.Request{NamespacedName: key}, "the event came before the note")
}
