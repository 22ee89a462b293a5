package deploy

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
)

// The add-on is on two clusters; the pass on the second one, c2, failed so far, so its agent has no RoleBinding of its
// own. The list of add-ons fails, or leaves out that of c2, which cannot be decoded.
func TestTheBindingOfAllClustersStaysWhileAnAddOnIsUnknown(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(rbacv1.AddToScheme(scheme), addonv1alpha1.Install(scheme)))
	for name, fails := range map[string]error{
		"the list fails": errors.New("the cache is not there"), "an add-on cannot be decoded": nil,
	} {
		t.Run(name, func(t *testing.T) {
			former := roleBinding("shared", "", "a")
			addOn := func(cluster string) *addonv1alpha1.ManagedClusterAddOn {
				return &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "a"}}
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(former, addOn("c1"), addOn("c2")).
				WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, metav1.ObjectNameField, nameOf).
				WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string {
					return []string{o.GetName()}
				}).
				WithInterceptorFuncs(interceptor.Funcs{
					List: func(ctx context.Context, c client.WithWatch, to client.ObjectList, opts ...client.ListOption) error {
						if err := errors.Join(fails, c.List(ctx, to, opts...)); err != nil {
							return err
						}
						all, areAddOns := to.(*addonv1alpha1.ManagedClusterAddOnList)
						if areAddOns && slices.Contains(opts, client.ListOption(decode.LeaveOut)) { // as decode.reader does
							all.Items = slices.DeleteFunc(all.Items, func(o addonv1alpha1.ManagedClusterAddOn) bool { return o.Namespace == "c2" })
						}
						return nil
					},
				}).Build()
			r := behindIn(c, c, nil)
			var f facts
			f.former = []*rbacv1.RoleBinding{former}
			_ = r.dropFormer(t.Context(), types.NamespacedName{Namespace: "c1", Name: "a"}, "mca", f)
			err := c.Get(t.Context(), client.ObjectKeyFromObject(former), &rbacv1.RoleBinding{})
			assert.False(t, apierrors.IsNotFound(err), "the agent of c2 has nothing else")
		})
	}
}
