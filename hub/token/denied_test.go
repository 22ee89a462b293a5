package token

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/reconcile"
	tokens "github.com/spokelet/spokelet/internal/token"
)

// The agent writes the status of its add-on: that must not keep its tokens after the hub denied the cluster.
func TestTheTokensOfADeniedClusterEndAlsoWhenItsAddOnIsUnknown(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(rbacv1.AddToScheme(scheme), corev1.AddToScheme(scheme), clusterv1.Install(scheme),
		addonv1alpha1.Install(scheme)))
	unknown := &metav1.ObjectMeta{Namespace: "c1", Name: "a"}
	decode.Mark(unknown, "json: cannot unmarshal")
	has := tokens.Render("c1", "a")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(has.ServiceAccount, has.Role, has.Binding,
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, isAddOn := o.(*addonv1alpha1.ManagedClusterAddOn); isAddOn {
					return decode.Check("ManagedClusterAddOn", unknown)
				}
				return c.Get(ctx, key, o, opts...)
			},
		}).Build()
	r := &Reconciler{
		Client: c, Live: c, AddOns: addonapi.Client{Client: c}, Clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)),
	}
	_, _ = r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	err := c.Get(t.Context(), client.ObjectKeyFromObject(has.ServiceAccount), &corev1.ServiceAccount{})
	assert.True(t, apierrors.IsNotFound(err), "the agent of a denied cluster keeps its identity")
}
