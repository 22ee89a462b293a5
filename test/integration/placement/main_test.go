// Package placement_test runs the hub manager on a real control plane and looks at what its placement controller
// decides when clusters, sets, bindings and Placements change. Its clusters have no agents.
package placement_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// plane is a hub with a hub manager.
var plane *suite.Plane

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "placement"}, manifests.CRDs(), manifests.Hub())
		suite.StartHub(t, plane)
		plane.AwaitPolicies(t)
	})
}

// tenant is a namespace with Placements, and clusters that only they select: their label tenant is the namespace.
type tenant struct {
	*testing.T
	namespace string
}

// newTenant makes a namespace that sets of clusters are bound to. The test runs beside the others, so it calls this once.
func newTenant(t *testing.T, sets ...string) *tenant {
	t.Helper()
	t.Parallel()
	n := &tenant{T: t, namespace: plane.Namespace(t, "placement")}
	for _, set := range sets {
		n.bind(set)
	}
	return n
}

// bind binds a set of clusters to the namespace.
func (n *tenant) bind(set string) *clusterv1beta2.ManagedClusterSetBinding {
	n.Helper()
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: set}}
	binding.Spec.ClusterSet = set
	require.NoError(n, plane.Client.Create(n.Context(), binding))
	return binding
}

// cluster makes a cluster with labels: "key=value,...".
func (n *tenant) cluster(name string, labels ...string) *clusterv1.ManagedCluster {
	n.Helper()
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: n.full(name), Labels: map[string]string{"tenant": n.namespace}},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
	maps.Copy(cluster.Labels, pairs(labels...))
	require.NoError(n, plane.Client.Create(n.Context(), cluster))
	return cluster
}

// full is the name of a cluster, which is its own among all tenants.
func (n *tenant) full(name string) string { return n.namespace + "-" + name }

// pairs are the keys and values of "key=value".
func pairs(texts ...string) map[string]string {
	all := map[string]string{}
	for _, text := range texts {
		key, value, _ := strings.Cut(text, "=")
		all[key] = value
	}
	return all
}

// placement makes a Placement that selects the clusters of the tenant, although they have no agent.
func (n *tenant) placement(name string, change ...func(*clusterv1beta1.PlacementSpec)) {
	n.Helper()
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: name}}
	p.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: n.own()}}
	p.Spec.Tolerations = []clusterv1beta1.Toleration{{
		Key: clusterv1.ManagedClusterTaintUnreachable, Operator: clusterv1beta1.TolerationOpExists,
	}}
	for _, c := range change {
		c(&p.Spec)
	}
	require.NoError(n, plane.Client.Create(n.Context(), p))
}

// own selects the clusters of the tenant.
func (n *tenant) own() clusterv1beta1.ClusterSelector {
	return clusterv1beta1.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: pairs("tenant=" + n.namespace)}}
}

// edit changes an object that others write, too.
func edit[T client.Object](n *tenant, o T, change func(T)) {
	n.Helper()
	suite.Eventually(n, func() error {
		if err := plane.Client.Get(n.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change(o)
		return plane.Client.Update(n.Context(), o)
	})
}

// editSpec changes the spec of a Placement.
func (n *tenant) editSpec(name string, change func(*clusterv1beta1.PlacementSpec)) {
	n.Helper()
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: name}}
	edit(n, p, func(p *clusterv1beta1.Placement) { change(&p.Spec) })
}

// slices returns the PlacementDecisions of a Placement.
func (n *tenant) slices(ctx context.Context, placement string) ([]clusterv1beta1.PlacementDecision, error) {
	var list clusterv1beta1.PlacementDecisionList
	err := plane.Client.List(ctx, &list, client.InNamespace(n.namespace),
		client.MatchingLabels{names.LabelPlacement: placement})
	return list.Items, err
}

// decided returns the decision groups of a Placement as text: the name of each, and its clusters. It checks that status
// and decisions agree.
func (n *tenant) decided(placement string) (string, error) {
	var p clusterv1beta1.Placement
	key := types.NamespacedName{Namespace: n.namespace, Name: placement}
	if err := plane.Client.Get(n.Context(), key, &p); err != nil {
		return "", err
	}
	list, err := n.slices(n.Context(), placement)
	if err != nil {
		return "", err
	}
	byName := map[string]clusterv1beta1.PlacementDecision{}
	for _, o := range list {
		byName[o.Name] = o
	}
	var groups []string
	total := 0
	for i, group := range p.Status.DecisionGroups {
		clusters := []string{}
		for _, name := range group.Decisions {
			o, ok := byName[name]
			if !ok || o.Labels[names.LabelDecisionGroupIndex] != strconv.Itoa(i) || int(group.DecisionGroupIndex) != i ||
				o.Labels[names.LabelDecisionGroupName] != group.DecisionGroupName {
				return "", fmt.Errorf("group %d of the status is %+v, its decision has labels %v", i, group, o.Labels)
			}
			delete(byName, name)
			for _, d := range o.Status.Decisions {
				clusters = append(clusters, strings.TrimPrefix(d.ClusterName, n.namespace+"-"))
			}
		}
		slices.Sort(clusters)
		if len(clusters) != int(group.ClustersCount) {
			return "", fmt.Errorf("group %d has the clusters %v, its status %d", i, clusters, group.ClustersCount)
		}
		total += len(clusters)
		groups = append(groups, group.DecisionGroupName+"["+strings.Join(clusters, " ")+"]")
	}
	if len(byName) > 0 || total != int(p.Status.NumberOfSelectedClusters) {
		return "", fmt.Errorf("no group has the decisions %v; the status counts %d clusters and not %d",
			slices.Sorted(maps.Keys(byName)), p.Status.NumberOfSelectedClusters, total)
	}
	return strings.Join(groups, " "), nil
}

// expect waits until a Placement has decided.
func (n *tenant) expect(placement, want string) {
	n.Helper()
	suite.Eventually(n, func() error {
		got, err := n.decided(placement)
		if err == nil && got != want {
			err = fmt.Errorf("the decisions are %s, not %s", got, want)
		}
		return err
	})
}

// says waits until a condition of a Placement has a reason, and texts in its message.
func (n *tenant) says(placement, kind, reason string, texts ...string) {
	n.Helper()
	suite.Eventually(n, func() error {
		var p clusterv1beta1.Placement
		key := types.NamespacedName{Namespace: n.namespace, Name: placement}
		if err := plane.Client.Get(n.Context(), key, &p); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, kind)
		if c == nil || c.Reason != reason || c.ObservedGeneration != p.Generation {
			return fmt.Errorf("%s is not %s: %+v", kind, reason, c)
		}
		var missing error
		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				missing = errors.Join(missing, fmt.Errorf("%q does not contain %q", c.Message, text))
			}
		}
		return missing
	})
}
