package deploy

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// unreadable makes the reads of one kind fail on cluster c1, as decode.reader does.
func unreadable(kind client.Object) interceptor.Funcs {
	unknown := &metav1.ObjectMeta{Namespace: "c1", Name: "a"}
	decode.Mark(unknown, "json: cannot unmarshal number 99999999999")
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			switch o.(type) {
			case *addonv1alpha1.ManagedClusterAddOn:
				if _, is := kind.(*addonv1alpha1.ManagedClusterAddOn); is && key.Namespace == "c1" {
					return decode.Check("ManagedClusterAddOn", unknown)
				}
			case *clusterv1.ManagedCluster:
				if _, is := kind.(*clusterv1.ManagedCluster); is && key.Name == "c1" {
					return decode.Check("ManagedCluster", unknown)
				}
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(opts)
			_, works := list.(*workv1.ManifestWorkList)
			if _, is := kind.(*workv1.ManifestWork); is && works && o.Namespace == "c1" {
				return decode.Check("ManifestWork", unknown)
			}
			return c.List(ctx, list, opts...)
		},
	}
}

// The add-on is on two clusters. Whichever of their agents is denied, the binding for all clusters must not stay
// because something of the add-on on c1 cannot be decoded; and the agent of c1 must not lose its role by that while it
// may have one.
// Shows: security/unread-add-ons
func TestTheBindingOfAllClustersGoesThoughAnAddOnCannotBeRead(t *testing.T) {
	for sentence, tc := range map[string]struct {
		unreadable client.Object
		accepted   bool
		keeps      bool
	}{
		"the add-on of a denied cluster":     {&addonv1alpha1.ManagedClusterAddOn{}, false, false},
		"the works of a denied cluster":      {&workv1.ManifestWork{}, false, false},
		"the add-on of an accepted cluster":  {&addonv1alpha1.ManagedClusterAddOn{}, true, true},
		"the works of an accepted cluster":   {&workv1.ManifestWork{}, true, true},
		"a cluster that cannot be read":      {&clusterv1.ManagedCluster{}, true, true},
		"a denied cluster that nobody reads": {&clusterv1.ManagedCluster{}, false, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			former := roleBinding("shared", "", "a")
			former.Subjects = []rbacv1.Subject{{
				APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: csr.AddonGroups("c1", "a")[1],
			}}
			cluster := func(name string, accepted bool) *clusterv1.ManagedCluster {
				return &clusterv1.ManagedCluster{
					ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: accepted},
				}
			}
			r := formerWorld(t, unreadable(tc.unreadable), former, addOnAt("c1"), addOnAt("c2"), ownNamespace("c1"),
				ownNamespace("c2"), cluster("c1", tc.accepted), cluster("c2", false))
			r.Agents = only{}
			for _, name := range []string{"c2", "c1"} {
				_, _ = r.Reconcile(t.Context(), reconcile.Request(name, "a")[0]) // it says what is wrong
			}
			var all rbacv1.RoleBindingList
			require.NoError(t, r.Client.List(t.Context(), &all))
			var subjects []string
			for _, binding := range all.Items {
				for _, subject := range binding.Subjects {
					subjects = append(subjects, subject.Name)
				}
			}
			if tc.keeps {
				assert.Equal(t, []string{csr.AddonGroups("c1", "a")[0]}, subjects, "the agent of c1 has its own")
				return
			}
			assert.Empty(t, subjects, "a denied agent has a role")
		})
	}
}
