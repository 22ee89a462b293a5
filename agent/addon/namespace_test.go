package addon

import (
	"context"
	"errors"
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
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Shows: registration/shared-namespace
func TestTheNamespaceThatAddOnsShareIsRestored(t *testing.T) {
	const own, shared = "open-cluster-management-agent", names.NamespaceAgentAddon
	named := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	ending := named(own)
	ending.Finalizers, ending.DeletionTimestamp = []string{"kubernetes"}, &metav1.Time{Time: noon}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, shared, errors.New("no"))
	for name, c := range map[string]struct {
		there    []client.Object
		at       string
		deleting bool
		refusal  error
		created  bool
		fails    bool
	}{
		"it is missing":                  {there: []client.Object{named(own)}, at: shared, created: true},
		"it is there after all":          {there: []client.Object{named(own), named(shared)}, at: shared},
		"one of the add-on alone":        {there: []client.Object{named(own)}, at: "hello"},
		"the add-on is going":            {there: []client.Object{named(own)}, at: shared, deleting: true},
		"the agent is uninstalled":       {there: []client.Object{ending}, at: shared},
		"its own namespace is gone":      {at: shared},
		"the agent lacks the right":      {there: []client.Object{named(own)}, at: shared, refusal: forbidden},
		"another error is tried again":   {there: []client.Object{named(own)}, at: shared, refusal: errors.New("away"), fails: true},
		"the cluster has a quota for it": {there: []client.Object{named(own)}, at: shared, refusal: apierrors.NewTooManyRequests("later", 1), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			created := false
			at := interceptor.NewClient(fake.NewClientBuilder().WithObjects(c.there...).Build(), interceptor.Funcs{
				Create: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.CreateOption) error {
					if c.refusal != nil {
						return c.refusal
					}
					err := to.Create(ctx, o, options...)
					created = err == nil
					return err
				},
			})
			f := addonWith()
			if c.deleting {
				f.addon.DeletionTimestamp = &metav1.Time{Time: noon}
			}
			r := &Reconciler{Namespace: own, sides: map[side]cluster.Cluster{sideAgent: stubCluster{client: at}}}
			s := &serving{r, f, place{side: sideAgent, namespace: c.at}, registration{}}
			outcome := s.restoreNamespace(t.Context())
			assert.Equal(t, c.created, created)
			assert.Equal(t, c.fails, outcome.Class() == reconcile.ClassRetry)
			var found corev1.Namespace
			if err := at.Get(t.Context(), types.NamespacedName{Name: shared}, &found); c.created {
				require.NoError(t, err)
			}
		})
	}
}
