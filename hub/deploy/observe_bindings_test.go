package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// permitting is an agent of which only the roles outside of the namespaces of clusters are known.
type permitting struct {
	addon.Agent
	shared []addon.Permission
	err    error
}

func (p permitting) SharedPermissions(context.Context) ([]addon.Permission, error) {
	return p.shared, p.err
}

// bindingReader returns a reconciler that reads the given objects through indexes only; read counts the RoleBindings
// that lists returned.
func bindingReader(t *testing.T, read *int, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(rbacv1.AddToScheme(scheme), corev1.AddToScheme(scheme), clusterv1.Install(scheme)))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&rbacv1.RoleBinding{}, addonapi.IndexBinding, addonapi.BindingKeys).
		WithIndex(&rbacv1.RoleBinding{}, addonapi.IndexSharedBinding, addonapi.SharedBindingKeys).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				var o client.ListOptions
				o.ApplyOptions(opts)
				assert.True(t, o.FieldSelector != nil || o.Namespace != "", "it reads every object of the kind")
				err := c.List(ctx, list, opts...)
				if found, isBindings := list.(*rbacv1.RoleBindingList); isBindings {
					*read += len(found.Items)
				}
				return err
			},
		}).Build()
	return &Reconciler{Client: c, Home: "hub"}
}

// roleBinding is a binding of an add-on as this package makes it: of one cluster in its namespace, of one cluster
// elsewhere, or of all.
func roleBinding(namespace, cluster, addOn string) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "open-cluster-management:" + addOn + ":role:agent",
			Labels: map[string]string{names.LabelAddonName: addOn, names.LabelAddonTemplate: ""},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
	}
	switch cluster {
	case "":
		b.OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterManagementAddOn", Name: addOn, UID: "cma"}}
	case namespace:
		b.OwnerReferences = []metav1.OwnerReference{{Kind: "ManagedClusterAddOn", Name: addOn, UID: "mca"}}
	default:
		b.Name += ":cluster:" + cluster
		b.Labels[names.LabelClusterName] = cluster
	}
	return b
}

func keysOf(bindings []*rbacv1.RoleBinding) []string {
	all := make([]string, 0, len(bindings))
	for _, b := range bindings {
		all = append(all, client.ObjectKeyFromObject(b).String())
	}
	slices.Sort(all)
	return all
}

func TestAPassReadsWhatBelongsToItsAddOnOnItsCluster(t *testing.T) {
	var objects []client.Object
	for c := range 40 {
		objects = append(objects, ownNamespace(fmt.Sprintf("c%d", c)))
		for a := range 5 {
			cluster, name := fmt.Sprintf("c%d", c), fmt.Sprintf("a%d", a)
			objects = append(objects, roleBinding(cluster, cluster, name), roleBinding("shared", cluster, name))
		}
	}
	for a := range 5 {
		objects = append(objects, roleBinding("shared", "", fmt.Sprintf("a%d", a)))
	}
	var read int
	r := bindingReader(t, &read, objects...)
	setup := addon.Setup{Permissions: []addon.Permission{permission("c7", "Role", "r"), permission("shared", "Role", "r")}}
	b, err := observeOn(t, r, "c7", "a3", permitting{}, setup)
	require.NoError(t, err)
	require.NoError(t, b.refused)
	assert.Empty(t, b.obsolete)
	const base = "open-cluster-management:a3:role:agent"
	assert.Equal(t, []string{"c7/" + base, "shared/" + base + ":cluster:c7"}, keysOf(b.bindings))
	assert.Equal(t, 3, read, "and nothing else of 405")
}

// observeOn observes the roles of an add-on on a cluster.
func observeOn(
	t *testing.T, r *Reconciler, cluster, name string, agent permitting, setup addon.Setup,
) (bindingFacts, error) {
	t.Helper()
	f := factsOf()
	f.addOn.Namespace, f.addOn.Name, f.cluster.Name, f.setup = cluster, name, cluster, setup
	var err error
	f.former, err = r.listFormer(t.Context(), client.ObjectKeyFromObject(f.addOn))
	require.NoError(t, err)
	f.foreign, err = r.observeNamespace(t.Context(), cluster)
	require.NoError(t, err)
	return r.observeBindings(t.Context(), agent, f)
}

// ownNamespace is the namespace of a cluster.
func ownNamespace(cluster string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: cluster, Labels: map[string]string{names.LabelClusterName: cluster},
	}}
}

// Shows: hub/namespace-of-a-cluster
func TestTheNamespaceOfAClusterIsForItsAgentsOnly(t *testing.T) {
	cluster := ownNamespace
	broken := errors.New("template missing")
	everywhere := roleBinding("c1", "", "a")
	for sentence, tc := range map[string]struct {
		on          string
		permissions []addon.Permission
		agent       permitting
		objects     []client.Object
		refused     string
		bindings    []string
		obsolete    []string
	}{
		"its own agent gets what it asks for there": {
			on: "c1", permissions: []addon.Permission{permission("c1", "Role", "r")}, objects: []client.Object{cluster("c1")},
		},
		"an agent of another cluster is refused": {
			on: "c2", permissions: []addon.Permission{permission("c1", "Role", "r")}, objects: []client.Object{cluster("c1")},
			refused: "the add-on asks for Role r in namespace c1, which is the namespace of a managed cluster: agents of other " +
				"clusters get nothing there; use type CurrentCluster",
		},
		"what agents of all clusters got before the cluster joined goes": {
			on: "c2", permissions: []addon.Permission{permission("c1", "Role", "r")},
			objects: []client.Object{cluster("c1"), everywhere}, refused: "managed cluster",
			obsolete: []string{"c1/open-cluster-management:a:role:agent"},
		},
		"and so does what one agent got": {
			on: "c2", objects: []client.Object{cluster("c1"), roleBinding("c1", "c2", "a")},
			bindings: []string{"c1/open-cluster-management:a:role:agent:cluster:c2"},
			obsolete: []string{"c1/open-cluster-management:a:role:agent:cluster:c2"},
		},
		"even if it is not known what the add-on asks for": {
			on: "c2", agent: permitting{err: broken}, objects: []client.Object{cluster("c1"), everywhere},
			obsolete: []string{"c1/open-cluster-management:a:role:agent"},
		},
		"the agent of that cluster takes it over": {
			on: "c1", permissions: []addon.Permission{permission("c1", "Role", "r")},
			objects: []client.Object{cluster("c1"), everywhere}, bindings: []string{"c1/open-cluster-management:a:role:agent"},
		},
		"unless it does not ask for it": {
			on: "c1", objects: []client.Object{cluster("c1"), everywhere},
			bindings: []string{"c1/open-cluster-management:a:role:agent"},
			obsolete: []string{"c1/open-cluster-management:a:role:agent"},
		},
		"elsewhere a binding that another spec asks for stays": {
			on: "c2", agent: permitting{shared: []addon.Permission{permission("c1", "Role", "r")}},
			objects: []client.Object{everywhere},
		},
		"elsewhere a binding that no spec asks for goes": {
			on: "c2", objects: []client.Object{everywhere},
			obsolete: []string{"c1/open-cluster-management:a:role:agent"},
		},
		"elsewhere it stays while the specs are not known": {
			on: "c2", agent: permitting{err: broken}, objects: []client.Object{everywhere},
		},
		"the namespace of the hub manager is nobody's": {
			on: "c2", permissions: []addon.Permission{permission("hub", "Role", "r")}, refused: "belongs to the hub manager",
		},
		"a permission needs a namespace": {
			on: "c2", permissions: []addon.Permission{permission("", "Role", "r")}, refused: "without a namespace",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var read int
			r := bindingReader(t, &read, append(tc.objects, ownNamespace("c2"))...)
			b, err := observeOn(t, r, tc.on, "a", tc.agent, addon.Setup{Permissions: tc.permissions})
			require.NoError(t, err)
			if tc.refused != "" {
				require.ErrorContains(t, b.refused, tc.refused)
				assert.True(t, addon.IsInvalid(b.refused))
			} else {
				require.NoError(t, b.refused)
			}
			assert.ElementsMatch(t, tc.bindings, keysOf(b.bindings))
			assert.ElementsMatch(t, tc.obsolete, keysOf(b.obsolete))
		})
	}
}

// Shows: hub/freed-namespace
func TestAnAddOnIsAskedAgainWhenTheNamespaceThatRefusedItIsNoClustersAnyMore(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "c2", Labels: map[string]string{names.LabelClusterName: "c2"},
	}}
	var read int
	r := bindingReader(t, &read, namespace)
	r.AddOns = addonapi.Client{Client: r.Client}
	key := types.NamespacedName{Namespace: "c1", Name: "a"}
	wanted := []addon.Permission{{Namespace: "c2", RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}}}
	err := r.checkPermissions(t.Context(), nil, key, wanted)
	require.True(t, addon.IsInvalid(err), "%v", err)
	assert.Contains(t, r.ofNamespace(t.Context(), namespace), ctrl.Request{NamespacedName: key}, "already during the pass")
	assert.Empty(t, r.asksFor.requests("c3"))

	require.NoError(t, r.Client.Delete(t.Context(), namespace))
	require.NoError(t, r.checkPermissions(t.Context(), nil, key, wanted))
	assert.NotEmpty(t, r.asksFor.requests("c2"), "it may become that of a cluster again")
	require.NoError(t, r.checkPermissions(t.Context(), nil, key, nil))
	assert.Empty(t, r.asksFor.requests("c2"))
}
