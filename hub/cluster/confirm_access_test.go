package cluster

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// A cluster is denied. The cache has its role as it is, and the cluster and its RoleBindings as they were before.
//
// Shows: registration/restored-no-access
func TestADeniedClusterDoesNotGetItsRoleBackByACacheThatIsBehind(t *testing.T) {
	have, want := renderGrants("c1", true), renderGrants("c1", false)
	cached := newCluster(func(c *clusterv1.ManagedCluster) {
		c.Spec.HubAcceptsClient = true
		c.Annotations = map[string]string{names.AnnotationAcceptedOn: "2026-03-01T11:00:00Z"}
	})
	live := cached.DeepCopy()
	live.Spec.HubAcceptsClient = false
	cache := hubWith(t, cached, ownNamespace(), want.role, want.binding, have.registration, have.work)
	pass(t, cache, hubWith(t, live, ownNamespace()))
	assert.Equal(t, want.role.Rules, read(t, cache, want.role).Rules)
}

// The namespace of a cluster was deleted, and another client has made one of its name, which the cache does not show.
//
// Shows: registration/restored-no-access
func TestAnAgentGetsNoAccessToANamespaceThatIsOfOthersByNow(t *testing.T) {
	cluster := newCluster(func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true })
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	for sentence, tc := range map[string]struct {
		live *corev1.Namespace
		gets bool
	}{"it is of others": {foreign, false}, "it is of the cluster": {ownNamespace(), true}} {
		t.Run(sentence, func(t *testing.T) {
			cache := hubWith(t, cluster, ownNamespace())
			pass(t, cache, hubWith(t, cluster, tc.live))
			binding := renderGrants("c1", true).registration
			found, err := reconcile.Get(t.Context(), cache, client.ObjectKeyFromObject(binding), &rbacv1.RoleBinding{})
			require.NoError(t, err)
			assert.Equal(t, tc.gets, found != nil)
		})
	}
}

// A cluster that a hub of OCM accepted has a name that Spokelet refuses, and keeps its access. A hub manager starts
// whose cache has no cluster yet.
//
// Shows: registration/taken-when-confirmed
func TestAClusterWithAnUnusableNameKeepsItsAccessThoughTheCacheLacksIt(t *testing.T) {
	const name = "my.cluster"
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"}}
	cluster.Spec.HubAcceptsClient = true
	have := renderGrants(name, true)
	for sentence, tc := range map[string]struct {
		live []client.Object
		stay bool
	}{"it exists": {[]client.Object{cluster}, true}, "it is gone": {nil, false}} {
		t.Run(sentence, func(t *testing.T) {
			cache := hubWith(t, have.role, have.binding)
			_, err := reconcilerOf(cache, hubWith(t, tc.live...)).Reconcile(t.Context(), requestOf(name))
			require.NoError(t, err)
			found, err := reconcile.Get(t.Context(), cache, client.ObjectKeyFromObject(have.role), &rbacv1.ClusterRole{})
			require.NoError(t, err)
			assert.Equal(t, tc.stay, found != nil)
		})
	}
}

// A cluster is deleted. The cache has its works, but not yet the add-on that is to go before them.
//
// Shows: registration/taken-when-confirmed
func TestWorksGoOnlyWhenTheAPIServerHasNoAddOn(t *testing.T) {
	cluster := newCluster(func(c *clusterv1.ManagedCluster) {
		c.Spec.HubAcceptsClient = true
		c.Finalizers, c.DeletionTimestamp = []string{names.FinalizerCluster}, deletedAt()
	})
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "w"}}
	for sentence, tc := range map[string]struct {
		live []client.Object
		stay bool
	}{"there is an add-on": {[]client.Object{addOnOf("a")}, true}, "there is none": {nil, false}} {
		t.Run(sentence, func(t *testing.T) {
			cache := hubWith(t, cluster, ownNamespace(), work)
			pass(t, cache, hubWith(t, append(tc.live, cluster, ownNamespace(), work)...))
			found, err := reconcile.Get(t.Context(), cache, client.ObjectKeyFromObject(work), &workv1.ManifestWork{})
			require.NoError(t, err)
			assert.Equal(t, tc.stay, found != nil)
		})
	}
}

// A Placement selects the clusters with the feature label of an add-on. A hub manager starts whose cache has no add-on
// yet.
//
// Shows: registration/taken-when-confirmed
func TestAClusterKeepsTheLabelOfAnAddOnThatTheCacheLacks(t *testing.T) {
	cluster := newCluster(func(c *clusterv1.ManagedCluster) {
		c.Labels = map[string]string{featurePrefix + "a": "available"}
		c.Status.Conditions = []metav1.Condition{
			condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue, "X", noon()),
		}
	})
	going := addOnOf("a")
	going.Finalizers, going.DeletionTimestamp = []string{"x/y"}, deletedAt()
	for sentence, tc := range map[string]struct {
		cached, live []client.Object
		stays        bool
	}{
		"it exists":          {nil, []client.Object{addOnOf("a")}, true},
		"it is gone":         {nil, nil, false},
		"another one exists": {nil, []client.Object{addOnOf("b")}, false},
		"it is going":        {[]client.Object{going}, []client.Object{going}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			cache := hubWith(t, append(tc.cached, cluster)...)
			pass(t, cache, hubWith(t, append(tc.live, cluster)...))
			_, labelled := read(t, cache, cluster).Labels[featurePrefix+"a"]
			assert.Equal(t, tc.stays, labelled)
		})
	}
}

// A cluster that stays as it is causes no read without the cache, however many there are.
//
// Shows: registration/accepted-when-confirmed
func TestWhatAClusterCostsTheAPIServer(t *testing.T) {
	asked := func(hub client.WithWatch, said *[]string) client.Reader {
		return interceptor.NewClient(hub, interceptor.Funcs{
			Get: func(
				ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
			) error {
				*said = append(*said, fmt.Sprintf("get %T", o))
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				*said = append(*said, fmt.Sprintf("list %T", list))
				return c.List(ctx, list, opts...)
			},
		})
	}
	var said []string
	cluster, request := newCluster(nil), requestFor(t, "c1", trusted)
	hub := hubWith(t, cluster, request)
	pass(t, hub, asked(hub, &said))
	require.True(t, read(t, hub, cluster).Spec.HubAcceptsClient)
	assert.Equal(t, []string{
		"get *v1.ManagedCluster", "get *v1.PartialObjectMetadata", "get *v1.CertificateSigningRequest",
	}, said, "once, when it is accepted")

	said = nil
	pass(t, hub, asked(hub, &said))
	assert.Equal(t, []string{"get *v1.ManagedCluster"}, said, "once, when it gets its namespace and access")

	said = nil
	for range 3 {
		pass(t, hub, asked(hub, &said))
		_, err := reconcilerOf(hub, asked(hub, &said)).Reconcile(t.Context(), requestOf(""))
		require.NoError(t, err)
	}
	assert.Empty(t, said, "at rest")
}

// addOnOf is an add-on of cluster c1.
func addOnOf(name string) *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: name}}
}
