package deploy

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// cacheOrHub is a hub, or the cache of one, with all indexes.
func cacheOrHub(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := hubScheme(t)
	require.NoError(t, errors.Join(addonv1beta1.Install(scheme), appsv1.AddToScheme(scheme)))
	b := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs)
	for _, o := range objects {
		copied, is := o.DeepCopyObject().(client.Object)
		require.True(t, is)
		b = b.WithObjects(copied)
	}
	return b.WithStatusSubresource(&addonv1alpha1.ManagedClusterAddOn{}).
		WithIndex(&rbacv1.RoleBinding{}, addonapi.IndexBinding, addonapi.BindingKeys).
		WithIndex(&rbacv1.RoleBinding{}, addonapi.IndexSharedBinding, addonapi.SharedBindingKeys).
		WithIndex(&workv1.ManifestWork{}, indexHosted, hostedKeys).
		WithIndex(&clusterv1.ManagedCluster{}, metav1.ObjectNameField, nameOf).
		WithIndex(&corev1.Namespace{}, metav1.ObjectNameField, nameOf).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, metav1.ObjectNameField, nameOf).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, nameOf).Build()
}

// behindIn is the reconciler of a hub whose cache may be behind.
func behindIn(cache, live client.Client, agents addon.Lookup) *Reconciler {
	return &Reconciler{
		Client: cache, Bindings: cache, Live: live, AddOns: addonapi.Client{Client: cache}, Agents: agents,
		Configurer: unconfigured{}, Clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)),
	}
}

func formerWorld(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *Reconciler {
	t.Helper()
	c := cacheOrHub(t, funcs, objects...)
	return behindIn(c, c, addon.Registry{})
}

func addOnAt(cluster string) *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "a", UID: "mca"}}
}

// The API server refuses the deletion for a while, as a policy of others may. Nothing but the queue starts another pass.
//
// Shows: security/shared-roles-again
func TestTheBindingOfAllClustersGoesAfterAFailureToo(t *testing.T) {
	former, fails, lists := roleBinding("shared", "", "a"), true, 0
	clusters := []client.Object{former}
	for i := range 20 {
		clusters = append(clusters, addOnAt(fmt.Sprintf("c%d", i)))
	}
	r := formerWorld(t, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if fails {
				return errors.New("the policy of others refuses it")
			}
			return c.Delete(ctx, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, to client.ObjectList, opts ...client.ListOption) error {
			if _, pages := to.(*metav1.PartialObjectMetadataList); pages {
				lists++
			}
			return c.List(ctx, to, opts...)
		},
	}, clusters...)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	r.Clock = clock
	f := facts{former: []*rbacv1.RoleBinding{former}}
	pass := func(cluster string) error {
		return r.dropFormer(t.Context(), types.NamespacedName{Namespace: cluster, Name: "a"}, "mca", f)
	}
	round := func() (failed []string) {
		for i := range 20 {
			if cluster := fmt.Sprintf("c%d", i); pass(cluster) != nil {
				failed = append(failed, cluster)
			}
		}
		return failed
	}
	assert.Equal(t, []string{"c19"}, round(), "the last one has seen all, and is repeated")
	assert.Equal(t, 1, lists)
	for range 10 {
		assert.Equal(t, []string{"c19"}, round(), "its queue repeats it")
	}
	assert.Equal(t, 1, lists, "200 passes cost nothing")
	clock.SetTime(clock.Now().Add(firstRetry))
	require.Error(t, pass("c7"), "any pass may try it then")
	assert.Equal(t, 2, lists)
	require.NoError(t, pass("c19"))
	clock.SetTime(clock.Now().Add(firstRetry))
	require.Error(t, pass("c7"))
	assert.Equal(t, 2, lists, "the pause grows")
	fails = false
	clock.SetTime(clock.Now().Add(firstRetry))
	require.NoError(t, pass("c7"))
	err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(former), &rbacv1.RoleBinding{})
	assert.True(t, apierrors.IsNotFound(err), "the agents of denied clusters keep what it grants")
}

// The pass of c1 was that of a denied cluster. An administrator accepts it again, and its next pass has not come when
// c2, the last one, has its own.
//
// Shows: security/shared-roles-again
func TestTheBindingOfAllClustersWaitsForAClusterThatIsAcceptedAgain(t *testing.T) {
	former := roleBinding("shared", "", "a")
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	r := formerWorld(t, interceptor.Funcs{}, former, addOnAt("c1"), addOnAt("c2"), cluster)
	pass := func(name string, cluster *clusterv1.ManagedCluster) {
		t.Helper()
		f := facts{former: []*rbacv1.RoleBinding{former}, cluster: cluster, clusterKnown: cluster != nil}
		require.NoError(t, r.dropFormer(t.Context(), types.NamespacedName{Namespace: name, Name: "a"}, "mca", f))
	}
	there := func() error {
		return r.Client.Get(t.Context(), client.ObjectKeyFromObject(former), &rbacv1.RoleBinding{})
	}
	pass("c1", cluster)
	var live clusterv1.ManagedCluster
	require.NoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), &live))
	live.Spec.HubAcceptsClient = true
	require.NoError(t, r.Client.Update(t.Context(), &live))
	pass("c2", nil)
	require.NoError(t, there(), "the agent of c1 has nothing else")
	pass("c1", &live) // It has a binding of its own now.
	assert.True(t, apierrors.IsNotFound(there()), "the agents of denied clusters keep what it grants")
}

// permitted is an agent with a credential of the hub and a role in a shared namespace.
type permitted struct{ addon.Agent }

// only finds that agent.
type only struct{}

func (only) Agent(context.Context, string) (addon.Agent, bool, error) { return permitted{}, true, nil }

func (permitted) About() addon.About { return addon.About{Name: "a"} }

func (permitted) Resolve(context.Context, addon.Request) (addon.Resolved, error) {
	p := permission("shared", "Role", "r")
	p.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: csr.AddonGroups("c1", "a")[1]}}
	return addon.Resolved{
		Registrations: []addonv1beta1.RegistrationConfig{{
			Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{},
		}},
		Setup: addon.Setup{Permissions: []addon.Permission{p}},
	}, nil
}

func (permitted) Render(context.Context, addon.Request) (addon.Rendering, error) {
	return addon.Rendering{}, nil
}

func (permitted) SharedPermissions(context.Context) ([]addon.Permission, error) {
	p := permission("shared", "Role", "r")
	return []addon.Permission{p}, nil
}

// The agent has a certificate, and is about to change to tokens: it has said so, and its ServiceAccount is not ready.
func TestTheBindingOfAllClustersStaysUntilAnAgentThatChangesToTokensHasItsOwn(t *testing.T) {
	former := roleBinding("shared", "", "a")
	former.Subjects = []rbacv1.Subject{{
		APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: csr.AddonGroups("c1", "a")[1],
	}}
	addOn := addOnAt("c1")
	addOn.Status.KubeClientDriver = "token"
	addOn.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: certificatesv1.KubeAPIServerClientSignerName}}
	r := formerWorld(t, interceptor.Funcs{}, former, addOn, ownNamespace("c1"),
		&clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		})
	r.Agents = only{}
	_, err := r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0])
	require.NoError(t, err)
	var all rbacv1.RoleBindingList
	require.NoError(t, r.Client.List(t.Context(), &all))
	assert.NotEmpty(t, all.Items, "the agent has no role any more, neither by its certificate nor by a token")
}

// The agents of clusters that the hub does not accept get nothing, whatever is wrong with what they ask for: they are
// not waited for.
func TestTheBindingOfAllClustersDoesNotWaitForAClusterThatIsDenied(t *testing.T) {
	former := roleBinding("shared", "", "a")
	r := formerWorld(t, interceptor.Funcs{}, former, addOnAt("c1"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}, // without our label: refused
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}})
	r.Agents = only{}
	_, _ = r.Reconcile(t.Context(), reconcile.Request("c1", "a")[0]) // it says what is wrong with the namespace
	gone := r.Client.Get(t.Context(), client.ObjectKeyFromObject(former), &rbacv1.RoleBinding{})
	assert.True(t, apierrors.IsNotFound(gone), "the denied agent keeps what the binding for all clusters grants")
}
