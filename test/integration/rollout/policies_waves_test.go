package rollout_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

// inGroups makes an add-on that runs with template t on two clusters, each in a decision group of its own, which are
// returned in the order of the groups.
func (w *world) inGroups() []string {
	w.Helper()
	clusters := w.clusters(2)
	slices.Sort(clusters)
	w.create(&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p"}})
	w.decides("p", "0", clusters[0])
	w.decides("p", "1", clusters[1])
	w.create(w.template("t", "one"), w.management(nil, w.strategy("p", w.usesTemplate("t"))))
	w.installs(clusters...)
	for _, cluster := range clusters {
		w.eventuallyDesires(cluster, w.usesTemplate("t"))
	}
	w.deploys(clusters...)
	for _, cluster := range clusters {
		w.eventuallyCompleted(cluster)
	}
	w.updateManagement(func(c *addonv1alpha1.ClusterManagementAddOn) {
		c.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.ProgressivePerGroup,
		}
	})
	return clusters
}

// approves adds names to what the policy approves.
func (w *world) approves(names ...string) {
	w.Helper()
	w.ruled(func(s *policies.AddOnPolicySpec) { s.Approved = append(s.Approved, names...) })
}

// eventuallyUnused waits until the policy says which of its approvals are of no use.
func (w *world) eventuallyUnused(names ...string) {
	w.Helper()
	suite.Eventually(w, suite.Checks(func(c assert.TestingT) {
		p := w.policy(policies.AddOnPolicySpec{})
		if assert.NoError(c, plane.Client.Get(w.Context(), client.ObjectKeyFromObject(p), p)) {
			assert.Equal(c, names, p.Status.Unused)
		}
	}))
}

// Shows: policies/policy-wave
func TestEachWaveIsApprovedForItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inGroups()
	one := w.hash(w.usesTemplate("t"))
	w.create(w.policy(policies.AddOnPolicySpec{Approval: policies.ApprovalPerWave}))
	w.edit("two")
	waves := w.eventuallyWaits(2)
	require.Len(t, waves, 2)
	of := " of placement " + w.namespace + "/p"
	assert.Equal(t, "decision group 0"+of, waves[0].Wave)
	assert.Equal(t, "decision group 1"+of, waves[1].Wave)
	assert.Equal(t, []bool{true, false}, []bool{waves[0].Turn, waves[1].Turn})
	w.eventuallyHolds(clusters[0], one, "does not approve content "+waves[0].Name+", which is for decision group 0"+of)

	w.approves(waves[1].Name) // out of turn
	w.eventuallyHolds(clusters[1], one, "decision groups follow one another")
	w.desires(clusters[0], one)
	w.ruled(func(s *policies.AddOnPolicySpec) { s.Approved = nil })
	w.approves(waves[0].Name)
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	w.deploys(clusters[0])
	w.eventuallyCompleted(clusters[0])
	next := w.eventuallyWaits(1)
	require.Len(t, next, 1)
	require.Equal(t, waves[1].Name, next[0].Name)
	require.Equal(t, waves[1].Content, next[0].Content)
	w.eventuallyHolds(clusters[1], one, "does not approve content "+waves[1].Name)

	two := w.hash(w.usesTemplate("t"))
	w.edit("three") // Other content needs other approvals, also where a wave of the one before was approved.
	other := w.eventuallyWaits(2)
	require.Len(t, other, 2)
	for _, wave := range other {
		require.NotContains(t, []string{waves[0].Name, waves[1].Name}, wave.Name)
	}
	w.eventuallyHolds(clusters[0], two, "does not approve content "+other[0].Name)
	w.eventuallyUnused(waves[0].Name)

	w.approves(other[0].Content) // All waves of it, which have their turns as ever.
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	w.eventuallyHolds(clusters[1], one, "decision groups follow one another")
	w.deploys(clusters[0])
	w.eventuallyDesires(clusters[1], w.usesTemplate("t"))
}
