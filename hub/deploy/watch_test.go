package deploy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Shows: hub/library-wakes
func TestWhichChangesOfAClusterWakeItsAddOns(t *testing.T) {
	tests := map[string]struct {
		change func(after *clusterv1.ManagedCluster)
		wakes  bool
	}{
		"nothing does not":       {func(*clusterv1.ManagedCluster) {}, false},
		"image mirrors do":       {annotate(names.AnnotationImageRegistries), true},
		"an annotation does":     {annotate("a"), true},
		"a label does":           {label("l"), true},
		"a health label doesn't": {label("feature.open-cluster-management.io/addon-x"), false},
		"a claim does": {func(after *clusterv1.ManagedCluster) {
			after.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "c", Value: "v"}}
		}, true},
		"the version does": {func(after *clusterv1.ManagedCluster) { after.Status.Version.Kubernetes = "v1.32.0" }, true},
		"its health does": {func(after *clusterv1.ManagedCluster) {
			after.Status.Conditions[0].Status = metav1.ConditionFalse
		}, true},
		"a new reason does not":        {func(after *clusterv1.ManagedCluster) { after.Status.Conditions[0].Reason = "Other" }, false},
		"its deletion does":            {func(after *clusterv1.ManagedCluster) { after.DeletionTimestamp = &metav1.Time{} }, true},
		"that it is not accepted does": {func(after *clusterv1.ManagedCluster) { after.Spec.HubAcceptsClient = true }, true},
		"its capacity does not": {func(after *clusterv1.ManagedCluster) {
			after.Status.Capacity = clusterv1.ResourceList{"cpu": {}}
		}, false},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			before := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
			before.Status.Conditions = []metav1.Condition{{
				Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue,
			}}
			after := before.DeepCopy()
			tc.change(after)
			assert.Equal(t, tc.wakes, clusterChange().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
		})
	}
}

func annotate(key string) func(*clusterv1.ManagedCluster) {
	return func(after *clusterv1.ManagedCluster) { after.Annotations = map[string]string{key: "v"} }
}

func label(key string) func(*clusterv1.ManagedCluster) {
	return func(after *clusterv1.ManagedCluster) { after.Labels = map[string]string{key: "v"} }
}

// onTwoClusters is a Reconciler of a hub on which add-on a is on clusters c1 and c2.
func onTwoClusters(t *testing.T) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	all := []client.Object{}
	for _, cluster := range []string{"c1", "c2"} {
		all = append(all, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "a"}})
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).WithIndex(&addonv1alpha1.ManagedClusterAddOn{},
		addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	return &Reconciler{Client: c, AddOns: addonapi.Client{Client: c}}
}

// TestWhichChangesOfABindingWakeWhichAddOns: 20 labels of a stranger on one RoleBinding caused 860 passes on 42 clusters.
func TestWhichChangesOfABindingWakeWhichAddOns(t *testing.T) {
	r := onTwoClusters(t)
	for sentence, tc := range map[string]struct {
		of         *rbacv1.RoleBinding
		change     func(*rbacv1.RoleBinding)
		now, later []string
	}{
		"a label of a stranger wakes none": {
			of: roleBinding("c1", "c1", "a"), change: func(b *rbacv1.RoleBinding) { b.Labels["x"] = "y" },
		},
		"a subject wakes the add-on of the cluster": {
			of: roleBinding("shared", "c2", "a"), now: []string{"c2/a"},
			change: func(b *rbacv1.RoleBinding) { b.Subjects = []rbacv1.Subject{{Name: "x"}} },
		},
		"a lost cluster wakes the add-on at once, and all of them later": {
			of: roleBinding("shared", "c2", "a"), now: []string{"c2/a"}, later: []string{"c1/a", "c2/a"},
			change: func(b *rbacv1.RoleBinding) { delete(b.Labels, names.LabelClusterName) },
		},
		"a lost template label wakes the add-on": {
			of: roleBinding("c1", "c1", "a"), now: []string{"c1/a"},
			change: func(b *rbacv1.RoleBinding) { delete(b.Labels, names.LabelAddonTemplate) },
		},
		"one for all clusters wakes all of them later, also in the namespace of a cluster": {
			of: roleBinding("c1", "", "a"), later: []string{"c1/a", "c2/a"},
			change: func(b *rbacv1.RoleBinding) { b.OwnerReferences = nil },
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			after := tc.of.DeepCopy()
			tc.change(after)
			var now, later []string
			if bindingDrift().Update(event.UpdateEvent{ObjectOld: tc.of, ObjectNew: after}) {
				now = keysOfRequests(append(ofBinding(t.Context(), tc.of), ofBinding(t.Context(), after)...))
				later = keysOfRequests(r.ofSharedBinding(t.Context(), after))
			}
			assert.Equal(t, tc.now, now)
			assert.Equal(t, tc.later, later)
		})
	}
}

// keysOfRequests are the different keys of requests, in order.
func keysOfRequests(requests []ctrl.Request) []string {
	var keys []string
	for _, request := range requests {
		keys = append(keys, request.String())
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// noted is a queue that notes its requests.
type noted struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]

	keys []ctrl.Request
}

func (n *noted) Add(r ctrl.Request)                       { n.keys = append(n.keys, r) }
func (n *noted) AddAfter(r ctrl.Request, _ time.Duration) { n.keys = append(n.keys, r) }

// Who writes ClusterRoleBindings may give one any owner. Kubernetes collects none of an owner in a namespace.
func TestAnOwnerDoesNotHideAClusterRoleBinding(t *testing.T) {
	f := factsOf()
	f.setup.Permissions = []addon.Permission{inAllNamespaces("reader")}
	binding := ofEverywhere(planBindings(f, nil)[0].After)
	binding.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ManagedClusterAddOn", Name: "a", UID: "any",
	}}
	assert.Equal(t, reconcile.Request("c1", "a"), ofBinding(t.Context(), binding))
}

// TestABindingThatIsNoMoreForAllClustersWakesThem: what it was counts as much as what it is.
func TestABindingThatIsNoMoreForAllClustersWakesThem(t *testing.T) {
	r := onTwoClusters(t)
	for sentence, change := range map[string]func(*rbacv1.RoleBinding){
		"it loses the label of the add-on":   func(b *rbacv1.RoleBinding) { delete(b.Labels, names.LabelAddonName) },
		"it loses the label of the template": func(b *rbacv1.RoleBinding) { delete(b.Labels, names.LabelAddonTemplate) },
		"it gets another add-on":             func(b *rbacv1.RoleBinding) { b.Labels[names.LabelAddonName] = "b" },
		"it becomes that of one cluster":     func(b *rbacv1.RoleBinding) { b.Labels[names.LabelClusterName] = "c1" },
	} {
		t.Run(sentence, func(t *testing.T) {
			before := roleBinding("shared", "", "a")
			after := before.DeepCopy()
			change(after)
			e := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
			require.True(t, bindingDrift().Update(e))
			q := &noted{}
			handler.EnqueueRequestsFromMapFunc(ofBinding).Update(t.Context(), e, q)
			reconcile.Delayed(sharedPeriod, r.ofSharedBinding).Update(t.Context(), e, q)
			assert.Subset(t, keysOfRequests(q.keys), []string{"c1/a", "c2/a"})
		})
	}
}

// TestANamespaceWithManyBindingsForAllClustersWakesEachAddOnOnce: anybody may label many bindings so.
func TestANamespaceWithManyBindingsForAllClustersWakesEachAddOnOnce(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1alpha1.Install(scheme))
	require.NoError(t, rbacv1.AddToScheme(scheme))
	const clusters, bindings = 50, 100
	all := []client.Object{}
	for i := range clusters {
		all = append(all, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("c", i), Name: "a"}})
	}
	for i := range bindings {
		binding := roleBinding("shared", "", "a")
		binding.Name = fmt.Sprint("b", i)
		all = append(all, binding)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, metav1.ObjectNameField, nameOf).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, indexHost, hostKeys).Build()
	r := &Reconciler{Client: c, AddOns: addonapi.Client{Client: c}}
	requests := r.ofNamespace(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shared"}})
	assert.Len(t, keysOfRequests(requests), clusters)
	assert.LessOrEqual(t, len(requests), clusters)
}
