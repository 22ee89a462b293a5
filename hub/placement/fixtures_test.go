package placement

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/install"
	"github.com/spokelet/spokelet/hub/placement/layout"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/names"
)

const setDefault, setGlobal = clustersets.Default, clustersets.Global

// sliceSize is the number of clusters that a PlacementDecision has at most.
const sliceSize = 100

func placement() *clusterv1beta1.Placement {
	return &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p-uid", Generation: 7}}
}

// hubWith returns a hub in memory with objects.
func hubWith(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.Install, clusterv1beta1.Install, clusterv1beta2.Install, addonv1alpha1.Install,
	} {
		require.NoError(t, add(scheme))
	}
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&clusterv1beta1.Placement{}, &clusterv1beta1.PlacementDecision{}).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, byName).
		WithIndex(&clusterv1beta2.ManagedClusterSet{}, metav1.ObjectNameField, byName).
		WithInterceptorFuncs(funcs).Build()
}

// boundIn returns a ManagedClusterSet of all clusters and the binding to it in a namespace.
func boundIn(namespace, name string) (*clusterv1beta2.ManagedClusterSet, *clusterv1beta2.ManagedClusterSetBinding) {
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	}
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1}}
	binding.Spec.ClusterSet = name
	binding.Status.Conditions = []metav1.Condition{{Type: clusterv1beta2.ClusterSetBindingBoundType, Status: metav1.ConditionTrue}}
	return set, binding
}

// helloBy returns an add-on that a Placement installs.
func helloBy(p *clusterv1beta1.Placement) *addonv1alpha1.ClusterManagementAddOn {
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "cma"}}
	cma.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyPlacements
	cma.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{{
		PlacementRef: addonv1alpha1.PlacementRef{Namespace: p.Namespace, Name: p.Name},
	}}
	return cma
}

// withHello returns a cluster that has always been available, and the add-on on it.
func withHello(name string, labels map[string]string) (*clusterv1.ManagedCluster, *addonv1alpha1.ManagedClusterAddOn) {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	c.Spec.HubAcceptsClient = true
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue}}
	return c, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: name, Name: "hello", Labels: map[string]string{names.LabelInstalledBy: names.InstalledByPlacement},
		CreationTimestamp: metav1.NewTime(noon().Add(-time.Hour)),
	}}
}

// installerOf returns the installer of a process whose placement tells passes.
func installerOf(cache client.Client, live client.Reader, clock clock.PassiveClock, passes *fleet.Passes) *install.Reconciler {
	return &install.Reconciler{
		Client: cache, Live: live, AddOns: addonapi.Client{Client: cache}, Clock: clock, Workers: 1,
		Placements: &fleet.Placements{Client: cache, Clock: clock, Own: true, Passes: passes},
	}
}

func sliceName(number int) string { return fmt.Sprintf("p-decision-%d", number) }

// written are the slices that are there after a plan was carried out.
func written(decisionSlices []layout.Slice) []*clusterv1beta1.PlacementDecision {
	var all []*clusterv1beta1.PlacementDecision
	for _, p := range decisionSlices {
		if p.Want != nil {
			all = append(all, p.Want)
		}
	}
	return all
}

func union(decisionSlices []*clusterv1beta1.PlacementDecision) []string {
	all := []string{}
	for _, decisionSlice := range decisionSlices {
		for _, d := range decisionSlice.Status.Decisions {
			all = append(all, d.ClusterName)
		}
	}
	slices.Sort(all)
	return all
}

func clusters(from, to int) []string {
	list := []string{}
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprintf("c%04d", i))
	}
	return list
}

func decisions(clusters ...string) []clusterv1beta1.ClusterDecision {
	var list []clusterv1beta1.ClusterDecision
	for _, name := range clusters {
		list = append(list, clusterv1beta1.ClusterDecision{ClusterName: name})
	}
	return list
}

// observedIndex is the index in the label of a slice, -1 without one.
func observedIndex(o *clusterv1beta1.PlacementDecision) int {
	index, err := strconv.Atoi(o.Labels[names.LabelDecisionGroupIndex])
	if err != nil {
		return -1
	}
	return index
}
