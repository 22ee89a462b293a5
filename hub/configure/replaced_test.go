package configure

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A stored content is deleted and created again by a user (kubectl replace --force, a restored backup), or by the hub
// manager itself, whose request had no answer. Each deletion is an event, as of a watch.
func TestAContentThatIsThereAgainIsNotReplacedAgainAndAgain(t *testing.T) {
	for sentence, lags := range map[string]bool{"the cache has it": false, "the cache does not have it yet": true} {
		t.Run(sentence, func(t *testing.T) {
			s := newStoring(t)
			addOn := s.runs("c1", s.level("one"))
			before := s.stored()[0]
			require.Equal(t, []string{"c1"}, s.deletes(before))
			again := before.DeepCopy()
			again.ResourceVersion, again.UID = "", ""
			require.NoError(t, s.Create(t.Context(), again))
			var deleted []client.Object
			writes := 0
			s.c.Store.Client = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if _, is := o.(*appsv1.ControllerRevision); is && lags {
						return apierrors.NewNotFound(schema.GroupResource{Resource: "controllerrevisions"}, key.Name)
					}
					return c.Get(ctx, key, o, opts...)
				},
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					err := c.Create(ctx, o, opts...)
					if err == nil {
						writes++
					}
					return err
				},
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					err := c.Delete(ctx, o, opts...)
					if err == nil {
						writes++
						deleted = append(deleted, before.DeepCopy())
					}
					return err
				},
			})
			s.c.Store.Live = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
					return c.List(ctx, list)
				},
			})
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
			defer q.ShutDown()
			for range 20 {
				_, err := s.c.Configure(t.Context(), addOn)
				require.NoError(t, err)
				events := deleted
				deleted, lags = nil, false
				for _, o := range events {
					s.c.storesAgain(t.Context(), event.DeleteEvent{Object: o}, q)
				}
			}
			require.Len(t, s.stored(), 1)
			assert.Zero(t, writes, "what was lost is there again")
		})
	}
}
