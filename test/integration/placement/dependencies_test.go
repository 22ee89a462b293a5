package placement_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

// addOn is an add-on of a tenant. Nothing deploys it.
type addOn struct {
	*tenant
	name string
}

// installs defines an add-on that a placement of the same name installs on clusters with label use, or that people do.
func (n *tenant) installs(name string, byPlacement bool) addOn {
	n.Helper()
	a := addOn{n, n.full(name)}
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: a.name}}
	definition.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyManual
	if byPlacement {
		n.placement(name, func(s *clusterv1beta1.PlacementSpec) {
			s.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels["use-"+name] = "yes"
		})
		definition.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyPlacements
		definition.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{{
			PlacementRef: addonv1alpha1.PlacementRef{Namespace: n.namespace, Name: name},
		}}
	}
	require.NoError(n, plane.Client.Create(n.Context(), definition))
	return a
}

// ruled writes the policy of the add-on.
func (a addOn) ruled(spec policies.AddOnPolicySpec) *policies.AddOnPolicy {
	a.Helper()
	p := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: a.name}, Spec: spec}
	require.NoError(a, plane.Client.Create(a.Context(), p))
	return p
}

// requires writes the policy of an add-on that depends on another one, and may bring it along.
func (a addOn) requires(other addOn, brings bool) *policies.AddOnPolicy {
	a.Helper()
	return a.ruled(policies.AddOnPolicySpec{DependsOn: []policies.Dependency{{Name: other.name, Install: brings}}})
}

func (a addOn) on(cluster string) *addonv1beta1.ManagedClusterAddOn {
	addOn, err := plane.AddOns.GetAddOn(a.Context(), types.NamespacedName{Namespace: a.full(cluster), Name: a.name})
	if err != nil {
		return nil
	}
	return addOn
}

// comes waits until a cluster has the add-on, installed by what its label says.
func (a addOn) comes(cluster, by string) {
	a.Helper()
	suite.Eventually(a, func() error {
		is := a.on(cluster)
		if is == nil || is.Labels[names.LabelInstalledBy] != by || !is.DeletionTimestamp.IsZero() {
			return fmt.Errorf("add-on %s on %s is not installed by %q: %v", a.name, cluster, by, is)
		}
		return nil
	})
}

// goes waits until a cluster does not have the add-on.
func (a addOn) goes(cluster string) {
	a.Helper()
	suite.Within(a, time.Minute, func() error {
		if is := a.on(cluster); is != nil {
			return fmt.Errorf("add-on %s is still on %s: %v", a.name, cluster, is)
		}
		return nil
	})
}

// says waits until condition Configured of the add-on on a cluster says something, while it is not being deleted.
func (a addOn) says(cluster, text string) {
	a.Helper()
	suite.Within(a, time.Minute, func() error {
		is := a.on(cluster)
		if is == nil || !is.DeletionTimestamp.IsZero() {
			return fmt.Errorf("add-on %s goes from %s: %v", a.name, cluster, is)
		}
		c := meta.FindStatusCondition(is.Status.Conditions, "Configured")
		if c == nil || !strings.Contains(c.Message, text) {
			return fmt.Errorf("add-on %s on %s does not say %q: %v", a.name, cluster, text, c)
		}
		return nil
	})
}

// kept waits for an Event on the ClusterManagementAddOn about why the add-on stays.
func (a addOn) kept(text string) {
	a.Helper()
	suite.Within(a, time.Minute, func() error {
		var events corev1.EventList
		if err := plane.Client.List(a.Context(), &events); err != nil {
			return err
		}
		for i := range events.Items {
			e := &events.Items[i]
			if e.Reason == "AddOnKept" && e.InvolvedObject.Name == a.name && strings.Contains(e.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("no Event about add-on %s says %q", a.name, text)
	})
}

// deselects takes labels of a cluster away.
func (n *tenant) deselects(cluster string, placements ...string) {
	n.Helper()
	edit(n, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: n.full(cluster)}}, func(c *clusterv1.ManagedCluster) {
		for _, placement := range placements {
			delete(c.Labels, "use-"+placement)
		}
	})
}

// keeps holds an add-on that is being deleted, as its author would, until the returned function is called.
func (a addOn) keeps(cluster string) (free func()) {
	a.Helper()
	patch := func(finalizers string) {
		o := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: a.full(cluster), Name: a.name}}
		require.NoError(a, plane.Client.Patch(a.Context(), o, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":`+finalizers+`}}`))))
	}
	patch(`["example.com/held"]`)
	return func() { patch(`null`) }
}

// Shows: policies/depends-brings
func TestAnAddOnBringsItsDependencyAlongAndTakesItAway(t *testing.T) {
	n := newTenant(t, "global")
	for _, cluster := range []string{"a", "b"} {
		n.cluster(cluster, "use-gateway=yes")
	}
	network := n.installs("network", false)
	suite.Eventually(n, func() error { // A person has it there before.
		return plane.Client.Create(n.Context(), &addonv1alpha1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: n.full("b"), Name: network.name},
		})
	})
	gateway := n.installs("gateway", true)
	gateway.comes("a", names.InstalledByPlacement)
	gateway.requires(network, true)
	network.comes("a", names.InstalledByDependency)
	network.comes("b", "")

	n.deselects("a", "gateway")
	n.deselects("b", "gateway")
	gateway.goes("a")
	gateway.goes("b")
	network.goes("a")
	network.comes("b", "")
}

// Shows: policies/depends-removal-placement
func TestPlacementsRemoveInTheReverseOrder(t *testing.T) {
	n := newTenant(t, "global")
	n.cluster("a", "use-gateway=yes", "use-network=yes")
	network, gateway := n.installs("network", true), n.installs("gateway", true)
	gateway.requires(network, false)
	network.comes("a", names.InstalledByPlacement)
	gateway.comes("a", names.InstalledByPlacement)
	free := gateway.keeps("a")
	n.deselects("a", "network") // The gateway needs it.
	network.says("a", "add-ons that depend on it are on the cluster and go first: "+gateway.name)
	network.kept("add-ons that depend on it are on the same clusters and go first: " + gateway.name)
	n.deselects("a", "gateway")
	suite.Within(n, time.Minute, suite.True("the gateway must be deleted", func() bool {
		is := gateway.on("a")
		return is != nil && !is.DeletionTimestamp.IsZero()
	}))
	network.comes("a", names.InstalledByPlacement)
	free()
	gateway.goes("a")
	network.goes("a")
}

// Shows: policies/depends-brings-on
func TestAnAddOnThatAPlacementDropsStaysWhereAnotherOneBringsIt(t *testing.T) {
	n := newTenant(t, "global")
	n.cluster("a", "use-gateway=yes", "use-network=yes")
	network, gateway := n.installs("network", true), n.installs("gateway", true)
	gateway.requires(network, true)
	network.comes("a", names.InstalledByPlacement)
	gateway.comes("a", names.InstalledByPlacement)
	was := network.on("a").UID
	n.deselects("a", "network")
	network.comes("a", names.InstalledByDependency)
	assert.Equal(t, was, network.on("a").UID)
	edit(n, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: n.full("a")}}, func(c *clusterv1.ManagedCluster) {
		c.Labels["use-network"] = "yes"
	})
	network.comes("a", names.InstalledByPlacement)
	n.deselects("a", "network")
	network.comes("a", names.InstalledByDependency)

	// What is a cycle for a while takes nothing away.
	back := network.requires(gateway, false)
	n.deselects("a", "gateway")
	gateway.goes("a")
	network.kept("its dependencies are a cycle, so that it is not known which add-ons bring it along: ")
	assert.Equal(t, was, network.on("a").UID)
	require.NoError(t, plane.Client.Delete(n.Context(), back))
	network.goes("a")
}

// Shows: policies/removals-windows
func TestARemovalWaitsForTheWindowsAndThatOfAClusterDoesNot(t *testing.T) {
	n := newTenant(t, "global")
	for _, cluster := range []string{"a", "b", "c"} {
		n.cluster(cluster, "use-logs=yes")
	}
	logs := n.installs("logs", true)
	logs.ruled(policies.AddOnPolicySpec{Removals: policies.RemovalsInWindows})
	window := &policies.MaintenanceWindow{
		ObjectMeta: metav1.ObjectMeta{Name: logs.name},
		Spec: policies.MaintenanceWindowSpec{
			Kind: "Deny", Schedule: "@yearly", Duration: metav1.Duration{Duration: 366 * 24 * time.Hour}, AddOns: []string{logs.name},
		},
	}
	require.NoError(t, plane.Client.Create(n.Context(), window))
	for _, cluster := range []string{"a", "b", "c"} {
		logs.comes(cluster, names.InstalledByPlacement)
	}
	n.deselects("a", "logs")
	n.deselects("c", "logs")
	logs.says("a", "it waits for its windows: MaintenanceWindow "+window.Name+" denies it")
	logs.kept("their windows do not let them go, such as that of cluster " + n.full("a"))
	// A person, and the removal of a cluster, do not wait.
	require.NoError(t, plane.AddOns.DeleteAddOn(n.Context(), logs.on("c")))
	logs.goes("c")
	require.NoError(t, plane.Client.Delete(n.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: n.full("b")}}))
	logs.goes("b")
	logs.comes("a", names.InstalledByPlacement)
	require.NoError(t, plane.Client.Delete(n.Context(), window))
	logs.goes("a")
}

// The gateway brings the network along to twelve clusters, and the mesh to another one. The policy of the gateway is
// deleted, and the gateway stays everywhere: no removal was one that counts.
//
// Shows: policies/depends-brings-limit
func TestADeletedPolicyTakesNothingFromAFleetWhateverAnotherPolicyBrings(t *testing.T) {
	for name, mesh := range map[string]bool{"alone": false, "beside another one": true} {
		t.Run(name, func(t *testing.T) {
			n := newTenant(t, "global")
			var clusters []string
			for i := range 12 {
				clusters = append(clusters, fmt.Sprintf("c%02d", i))
				n.cluster(clusters[i], "use-gateway=yes")
			}
			n.cluster("other", "use-mesh=yes")
			network, gateway := n.installs("network", false), n.installs("gateway", true)
			policy := gateway.requires(network, true)
			if mesh {
				n.installs("mesh", true).requires(network, true)
				network.comes("other", names.InstalledByDependency)
			}
			for _, cluster := range clusters {
				gateway.comes(cluster, names.InstalledByPlacement)
				network.comes(cluster, names.InstalledByDependency)
			}
			require.NoError(t, plane.Client.Delete(t.Context(), policy))
			left := func() (count int) {
				for _, cluster := range clusters {
					if is := network.on(cluster); is != nil && is.DeletionTimestamp.IsZero() {
						count++
					}
				}
				return count
			}
			held := ""
			suite.Within(t, time.Minute, func() error {
				definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: network.name}}
				if err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
					return err
				}
				if held = definition.Annotations[names.AnnotationRemovalHeld]; held == "" && left() == len(clusters) {
					return fmt.Errorf("nothing happens: %v", definition.Annotations)
				}
				return nil
			})
			assert.Contains(t, held, "no AddOnPolicy brings it to 12 clusters any more")
			assert.Equal(t, len(clusters), left(), "clusters that have the network still")
		})
	}
}

// The strategy becomes Manual, and nobody removes what placements installed: not the policy of another add-on either, by
// which the hub manager removes what that brought.
//
// Shows: policies/depends-brings-manual
func TestWhatPlacementsInstalledStaysWhereAPolicyBringsTheAddOnElsewhere(t *testing.T) {
	n := newTenant(t, "global")
	n.cluster("a", "use-network=yes")
	n.cluster("b", "use-gateway=yes", "use-network=yes")
	network, gateway := n.installs("network", true), n.installs("gateway", true)
	network.comes("a", names.InstalledByPlacement)
	network.comes("b", names.InstalledByPlacement)
	gateway.comes("b", names.InstalledByPlacement)
	was := network.on("a").UID
	edit(n, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: network.name}},
		func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.InstallStrategy = addonv1alpha1.InstallStrategy{Type: addonv1alpha1.AddonInstallStrategyManual}
		})
	require.NoError(t, plane.AddOns.DeleteAddOn(n.Context(), network.on("b")))
	network.goes("b")
	policy := gateway.requires(network, true)
	network.comes("b", names.InstalledByDependency)
	n.deselects("a", "network")

	// A pass over all clusters of the add-on removes what was brought along, and nothing else.
	n.deselects("b", "gateway")
	gateway.goes("b")
	network.goes("b")
	require.NoError(t, plane.Client.Delete(n.Context(), policy))
	network.comes("a", names.InstalledByPlacement)
	assert.Equal(t, was, network.on("a").UID)
}
