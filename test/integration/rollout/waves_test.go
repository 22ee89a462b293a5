package rollout_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// progressive is a strategy that admits so many clusters at a time.
func progressive(atATime int, deadline string) clusterv1alpha1.RolloutStrategy {
	return clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
			MaxConcurrency: intstr.FromInt32(int32(atATime)),
			RolloutConfig:  clusterv1alpha1.RolloutConfig{ProgressDeadline: deadline},
		},
	}
}

// inWaves makes an add-on that runs with template t on clusters, which are returned sorted, and has a strategy.
func (w *world) inWaves(n int, strategy clusterv1alpha1.RolloutStrategy) []string {
	w.Helper()
	clusters := w.clusters(n)
	slices.Sort(clusters)
	entry := w.strategy("p", w.usesTemplate("t"))
	w.create(w.template("t", "one"), w.management(nil, entry))
	w.selects("p", clusters...)
	w.installs(clusters...)
	for _, cluster := range clusters {
		w.eventuallyDesires(cluster, w.usesTemplate("t"))
	}
	w.deploys(clusters...)
	for _, cluster := range clusters {
		w.eventuallyCompleted(cluster)
	}
	w.updateManagement(func(c *addonv1alpha1.ClusterManagementAddOn) {
		c.Spec.InstallStrategy.Placements[0].RolloutStrategy = strategy
	})
	return clusters
}

// within changes how long a change may take, by which a test says when one fails: it would miss what lasts for seconds.
func (w *world) within(deadline string) {
	w.Helper()
	w.updateManagement(func(c *addonv1alpha1.ClusterManagementAddOn) {
		c.Spec.InstallStrategy.Placements[0].RolloutStrategy = progressive(1, deadline)
	})
}

// edit changes the template in place.
func (w *world) edit(content string) {
	w.Helper()
	update(w, w.template("t", ""), func(t *addonv1alpha1.AddOnTemplate) { t.Spec = w.template("t", content).Spec })
}

// eventuallyHolds waits until the add-on on a cluster keeps its content and names the cause.
func (w *world) eventuallyHolds(cluster, hash, reason string) {
	w.Helper()
	w.eventuallySays(cluster, metav1.Condition{
		Type: "Configured", Status: metav1.ConditionFalse, Reason: "ConfigurationsNotConfigured", Message: reason,
	})
	w.desires(cluster, hash)
}

// desires requires the content that the add-on on a cluster is to have.
func (w *world) desires(cluster, hash string) {
	w.Helper()
	references := w.addOn(cluster).Status.ConfigReferences
	require.Len(w, references, 1)
	assert.Equal(w, hash, references[0].DesiredConfig.SpecHash, cluster)
}

// Shows: hub/waves
func TestATemplateThatIsEditedInPlaceMovesInWaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(4, progressive(2, ""))
	old := w.hash(w.usesTemplate("t"))

	w.edit("two")
	next := w.hash(w.usesTemplate("t"))
	for _, cluster := range clusters[:2] {
		w.eventuallyDesires(cluster, w.usesTemplate("t"))
	}
	for _, cluster := range clusters[2:] {
		w.eventuallyHolds(cluster, old, "maxConcurrency")
	}
	w.eventuallyCounts(0, "selected clusters 4. configured addons 2/4 progressing..., 0 failed 0 timeout.")

	w.deploys(clusters[0])
	w.eventuallyDesires(clusters[2], w.usesTemplate("t"))
	w.desires(clusters[3], old)

	w.deploys(clusters[1:3]...)
	w.eventuallyDesires(clusters[3], w.usesTemplate("t"))
	w.deploys(clusters[3])
	w.eventuallyCounts(0, "selected clusters 4. configured addons 4/4 completed with no errors, 0 failed 0 timeout.")
	w.desires(clusters[3], next)
}

// Shows: hub/stops-at-failures, invariants/failures-stop
func TestARolloutStopsAtAFailureAndGoesOnWhenItIsWell(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(3, progressive(1, "3s"))
	old := w.hash(w.usesTemplate("t"))

	w.edit("two")
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	w.eventuallyManagement(func(c assert.TestingT, management *addonv1beta1.ClusterManagementAddOn) {
		condition := meta.FindStatusCondition(management.Status.InstallProgressions[0].Conditions, "Progressing")
		assert.Contains(c, condition.Message, "1 timeout")
		assert.Contains(c, condition.Message, clusters[0], "the failed cluster is named")
	})
	w.eventuallySays(clusters[0], metav1.Condition{
		Type: names.ConditionRolloutFailed, Status: metav1.ConditionTrue, Reason: "TimedOut", Message: "progressDeadline",
	})
	version := w.addOn(clusters[0]).ResourceVersion
	w.desires(clusters[1], old)
	w.desires(clusters[2], old)
	w.edit("two") // Nothing changes, so that nothing is written.
	w.eventuallyHolds(clusters[1], old, "maxFailures is 0")
	assert.Equal(w, version, w.addOn(clusters[0]).ResourceVersion, "the status of the failed one rests")

	w.deploys(clusters[0])
	w.eventuallyDesires(clusters[1], w.usesTemplate("t"))
	w.eventually(clusters[0], func(c assert.TestingT, addOn *addonv1beta1.ManagedClusterAddOn) {
		assert.Nil(c, meta.FindStatusCondition(addOn.Status.Conditions, names.ConditionRolloutFailed))
	})
	w.deploys(clusters[1])
	w.eventuallyDesires(clusters[2], w.usesTemplate("t"))
	w.deploys(clusters[2])
	w.eventuallyCounts(0, "selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
}

// Shows: hub/goes-back
func TestARolloutThatIsTakenBackReturnsToTheOldContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(3, progressive(1, ""))
	old := w.hash(w.usesTemplate("t"))

	w.edit("two")
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	w.edit("one")
	require.Equal(t, old, w.hash(w.usesTemplate("t")))
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	w.deploys(clusters[0])
	for _, cluster := range clusters {
		w.eventuallyDesires(cluster, w.usesTemplate("t"))
	}
	w.eventuallyCounts(0, "selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
}

// Shows: hub/stored-contents
func TestTheContentThatAClusterHasIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inWaves(2, progressive(1, ""))
	w.edit("two")
	var revisions appsv1.ControllerRevisionList
	storesBoth := suite.Checks(func(c assert.TestingT) {
		err := plane.Client.List(t.Context(), &revisions, client.InNamespace(names.NamespaceHub),
			client.MatchingLabels{names.LabelAddonName: w.addon})
		if assert.NoError(c, err) && assert.Len(c, revisions.Items, 2) {
			contents := string(revisions.Items[0].Data.Raw) + string(revisions.Items[1].Data.Raw)
			assert.Contains(c, contents, `"k":"one"`)
			assert.Contains(c, contents, `"k":"two"`)
		}
	})
	suite.Eventually(t, storesBoth)
	for _, deleted := range revisions.Items { // by a user, and nothing else changes
		require.NoError(t, plane.Client.Delete(t.Context(), &deleted))
	}
	suite.Eventually(t, storesBoth)
}

// Shows: hub/strategy-problem
func TestAStrategyThatCannotBeUsedIsReportedAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(1, progressive(1, "5|"))
	old := w.hash(w.usesTemplate("t"))
	w.edit("two")
	w.eventuallyHolds(clusters[0], old, "progressDeadline")
}
