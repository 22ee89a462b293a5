package deploy

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"time"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// unconfigured decides that an add-on has no configuration.
type unconfigured struct{ addon.Configurer }

func (unconfigured) Configure(context.Context, *addonv1beta1.ManagedClusterAddOn) (addon.Configuration, error) {
	return addon.Configuration{}, nil
}

// The agent of a cluster writes the statuses of its works and add-ons. What it wrote there must not keep its roles after
// the hub denied the cluster.
func TestTheRolesOfADeniedClusterEndWhateverElseIsUnknown(t *testing.T) {
	unknown := &metav1.ObjectMeta{Namespace: "c1", Name: "a"}
	decode.Mark(unknown, "json: cannot unmarshal number 99999999999")
	for name, unreadable := range map[string]client.Object{
		"a work that cannot be decoded":    &workv1.ManifestWork{},
		"an add-on that cannot be decoded": &addonv1alpha1.ManagedClusterAddOn{},
	} {
		t.Run(name, func(t *testing.T) {
			binding := roleBinding("shared", "c1", "a")
			c := fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(binding,
				&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
				&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a"}},
				ownNamespace("c1")).
				WithIndex(&rbacv1.RoleBinding{}, addonapi.IndexBinding, addonapi.BindingKeys).
				WithIndex(&clusterv1.ManagedCluster{}, metav1.ObjectNameField, nameOf).
				WithInterceptorFuncs(interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
						_, isAddOn := o.(*addonv1alpha1.ManagedClusterAddOn)
						if _, bad := unreadable.(*addonv1alpha1.ManagedClusterAddOn); bad && isAddOn {
							return decode.Check("ManagedClusterAddOn", unknown)
						}
						return c.Get(ctx, key, o, opts...)
					},
					List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
						if _, ofWorks := list.(*workv1.ManifestWorkList); ofWorks {
							return decode.Check("ManifestWork", unknown)
						}
						return c.List(ctx, list, opts...)
					},
				}).Build()
			r := &Reconciler{
				Client: c, Bindings: c, Live: c, AddOns: addonapi.Client{Client: c}, Agents: addon.Registry{},
				Configurer: unconfigured{}, Clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)),
			}
			_, _ = r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
			err := c.Get(t.Context(), client.ObjectKeyFromObject(binding), &rbacv1.RoleBinding{})
			assert.True(t, apierrors.IsNotFound(err), "the agent of a denied cluster keeps its role")
		})
	}
}
