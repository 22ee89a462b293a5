package rollout_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// decides plays the placement controller: the placement selects the clusters, which are in a decision group with an
// index; an empty one means none. Several calls make several groups.
func (w *world) decides(placement, index string, clusters ...string) {
	w.Helper()
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: placement + "-decision-of-group" + index,
		Labels: map[string]string{names.LabelPlacement: placement},
	}}
	if index != "" {
		decision.Labels[names.LabelDecisionGroupIndex] = index
	}
	w.create(decision)
	decision.Status.Decisions = []clusterv1beta1.ClusterDecision{}
	for _, cluster := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	require.NoError(w, plane.Client.Status().Update(w.Context(), decision))
}

// uninstalls plays the installer, and the garbage collector.
func (w *world) uninstalls(cluster string) {
	w.Helper()
	require.NoError(w, plane.Client.Delete(w.Context(),
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: w.addon}}))
}

// Groups 0 and 2 are there, and clusters in none. A cluster of group 0 belongs to a later placement, another one does not
// exist: neither holds its group up. More failures are tolerated than a group has clusters, stated as a text;
// a failure that is tolerated lets exactly one group begin.
//
// Shows: hub/rollout-per-group, invariants/groups-in-order
func TestDecisionGroupsFollowOneAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.clusters(5)
	slices.Sort(clusters)
	first, second, third, last, elsewhere := clusters[0], clusters[1], clusters[2], clusters[3], clusters[4]
	never := w.addon + "-never"
	for _, placement := range []string{"p", "q"} {
		w.create(&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: placement}})
	}
	w.decides("p", "0", first, elsewhere, never)
	w.decides("p", "2", second)
	w.decides("p", "3", third)
	w.decides("p", "", last)
	w.decides("q", "0", elsewhere)
	p, q := w.strategy("p", w.usesTemplate("t")), w.strategy("q", w.usesTemplate("other"))
	w.create(w.template("t", "one"), w.template("other", "one"), w.management(nil, p, q))
	installed := []string{first, second, third, last, elsewhere}
	w.installs(installed...)
	for _, cluster := range installed[:4] {
		w.eventuallyDesires(cluster, w.usesTemplate("t"))
	}
	w.eventuallyDesires(elsewhere, w.usesTemplate("other"))
	w.deploys(installed...)
	for _, cluster := range installed {
		w.eventuallyCompleted(cluster)
	}
	w.updateManagement(func(c *addonv1alpha1.ClusterManagementAddOn) {
		c.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
				RolloutConfig: clusterv1alpha1.RolloutConfig{MaxFailures: intstr.FromString("5"), ProgressDeadline: "10s"},
			},
		}
	})
	old := w.hash(w.usesTemplate("t"))
	w.edit("two")
	w.eventuallyDesires(first, w.usesTemplate("t"))
	for _, cluster := range []string{second, third, last} {
		w.eventuallyHolds(cluster, old, "decision groups follow one another")
	}

	// The first one times out, which is tolerated.
	w.eventuallyDesires(second, w.usesTemplate("t"))
	w.desires(third, old)
	w.desires(last, old)
	w.deploys(second)
	w.eventuallyDesires(third, w.usesTemplate("t"))
	w.desires(last, old)
	w.deploys(third)
	w.eventuallyDesires(last, w.usesTemplate("t"))
	w.deploys(first, last)
	w.eventuallyCounts(0, "selected clusters 6. configured addons 4/4 completed with no errors, 0 failed 0 timeout.")
}

// Shows: hub/rollout-progressive, invariants/slots
func TestClustersThatComeAndGoDuringARolloutObeyItsLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(4, progressive(1, ""))
	// The cluster with the first name comes in the middle: the others know nothing of it until then.
	newcomer, others := clusters[0], clusters[1:]
	w.uninstalls(newcomer)
	w.redecides("p", others...)
	w.eventuallyCounts(0, "selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
	old := w.hash(w.usesTemplate("t"))
	w.edit("two")
	w.eventuallyDesires(others[0], w.usesTemplate("t"))
	w.eventuallyHolds(others[1], old, "maxConcurrency")

	w.redecides("p", clusters...)
	w.installs(newcomer)
	w.eventuallySays(newcomer, metav1.Condition{
		Type: "Configured", Status: metav1.ConditionFalse, Reason: "ConfigurationsNotConfigured", Message: "maxConcurrency",
	})
	require.Empty(t, w.addOn(newcomer).Status.ConfigReferences, "another one is in flight")

	// The one in flight leaves, and frees its place for the first by name.
	w.uninstalls(others[0])
	w.redecides("p", newcomer, others[1], others[2])
	w.eventuallyDesires(newcomer, w.usesTemplate("t"))
	w.desires(others[1], old)
	for i, cluster := range []string{newcomer, others[1], others[2]} {
		w.eventuallyDesires(cluster, w.usesTemplate("t"))
		w.deploys(cluster)
		if i == 0 {
			w.eventuallyDesires(others[1], w.usesTemplate("t"))
			w.desires(others[2], old)
		}
	}
	w.eventuallyCounts(0, "selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
}

// redecides plays the placement controller: a placement has other decisions.
func (w *world) redecides(placement string, clusters ...string) {
	w.Helper()
	decision := &clusterv1beta1.PlacementDecision{}
	key := client.ObjectKey{Namespace: w.namespace, Name: placement + "-decision-1"}
	require.NoError(w, plane.Client.Get(w.Context(), key, decision))
	decision.Status.Decisions = []clusterv1beta1.ClusterDecision{}
	for _, cluster := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	require.NoError(w, plane.Client.Status().Update(w.Context(), decision))
}
