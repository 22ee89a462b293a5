package rollout_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

// onFailure is a policy that says what becomes of failed clusters.
func onFailure(action policies.Action) policies.AddOnPolicySpec {
	return policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: action}}
}

// eventuallyRuled waits until the status of the policy is as check wants.
func (w *world) eventuallyRuled(check func(assert.TestingT, policies.AddOnPolicyStatus)) {
	w.Helper()
	suite.Eventually(w, suite.Checks(func(c assert.TestingT) {
		p := w.policy(policies.AddOnPolicySpec{})
		if assert.NoError(c, plane.Client.Get(w.Context(), client.ObjectKeyFromObject(p), p)) {
			check(c, p.Status)
		}
	}))
}

// rules creates the policy, and waits until it knows what completed for the only placement. It returns the name of that.
func (w *world) rules(spec policies.AddOnPolicySpec) (completed string) {
	w.Helper()
	w.create(w.policy(spec))
	return w.eventuallyCompletes()
}

// eventuallyCompletes waits until the content that the only placement asks for completed, and returns its name.
func (w *world) eventuallyCompletes() (content string) {
	w.Helper()
	w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) {
		if assert.Len(c, status.Placements, 1) && assert.NotEmpty(c, status.Placements[0].Completed) {
			content = status.Placements[0].Content
			assert.Equal(c, content, status.Placements[0].Completed[0].Content)
		}
	})
	return content
}

// eventuallyAsks waits until the only placement asks for another content than one, and returns its name.
func (w *world) eventuallyAsks(before string) (content string) {
	w.Helper()
	w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) {
		if assert.Len(c, status.Placements, 1) {
			content = status.Placements[0].Content
			assert.NotEqual(c, before, content)
		}
	})
	return content
}

// eventuallyHas waits until the add-on on a cluster desires one configuration with the content.
func (w *world) eventuallyHas(cluster, hash string) {
	w.Helper()
	w.eventually(cluster, func(c assert.TestingT, addOn *addonv1beta1.ManagedClusterAddOn) {
		if assert.Len(c, addOn.Status.ConfigReferences, 1) {
			assert.Equal(c, hash, addOn.Status.ConfigReferences[0].DesiredConfig.SpecHash)
		}
	})
}

// eventuallyUndone waits until the add-on on a cluster says that it returned from what it failed with.
func (w *world) eventuallyUndone(cluster, hash string) {
	w.Helper()
	w.eventuallySays(cluster, metav1.Condition{
		Type: names.ConditionRolloutFailed, Status: metav1.ConditionTrue, Reason: "Undone", Message: "it has what it had before",
	})
	w.desires(cluster, hash)
}

// unfailed waits until no rollout counts the add-on on a cluster as failed.
func (w *world) unfailed(cluster string) {
	w.Helper()
	w.eventually(cluster, func(c assert.TestingT, addOn *addonv1beta1.ManagedClusterAddOn) {
		assert.Nil(c, meta.FindStatusCondition(addOn.Status.Conditions, names.ConditionRolloutFailed))
	})
}

// Shows: policies/undo-failed, policies/undo-retry
func TestAClusterReturnsFromWhatItFailedWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(2, progressive(1, "2s"))
	old := w.hash(w.usesTemplate("t"))
	first := w.rules(onFailure(policies.ActionUndo))

	w.edit("two") // and no agent applies it
	second := w.eventuallyAsks(first)
	w.eventuallyUndone(clusters[0], old)
	w.eventuallySays(clusters[0], metav1.Condition{
		Type: "Configured", Status: metav1.ConditionTrue, Reason: "ConfigurationsConfigured",
		Message: "content " + second + " failed on this cluster and was undone",
	})
	w.eventuallyHolds(clusters[1], old, "maxFailures is 0")
	w.deploys(clusters[0])
	w.eventuallyCompleted(clusters[0])
	w.eventuallyUndone(clusters[0], old)
	w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) {
		if assert.Len(c, status.Undone, 1) {
			assert.Equal(c, second, status.Undone[0].Content)
			assert.Equal(c, policies.ActionUndo, status.Undone[0].Action)
			assert.EqualValues(c, 1, status.Undone[0].Clusters)
		}
	})
	w.eventuallyCounts(0, "selected clusters 2. configured addons 0/2 progressing..., 1 failed 0 timeout. the rollout stopped")

	// A person says that it is tried again: it fails again, and only stops.
	w.ruled(func(s *policies.AddOnPolicySpec) { s.Retry = []string{second} })
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	w.eventuallySays(clusters[0], metav1.Condition{
		Type: names.ConditionRolloutFailed, Status: metav1.ConditionTrue, Reason: "TimedOut", Message: "progressDeadline",
	})
	w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) { assert.Empty(c, status.Undone) })
	w.desires(clusters[0], w.hash(w.usesTemplate("t")))

	w.within("1h")
	w.edit("three") // Another content is another one.
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	w.deploys(clusters[0])
	w.unfailed(clusters[0])
	w.eventuallyDesires(clusters[1], w.usesTemplate("t"))
}

// Shows: policies/undo-failed
func TestAnUndoThatFailsConvergesAndIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(2, progressive(1, "1h"))
	old := w.hash(w.usesTemplate("t"))
	first := w.rules(onFailure(policies.ActionUndo))
	w.edit("two")
	w.eventuallyAsks(first)
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	w.deploysAs(metav1.ConditionFalse, clusters[0])
	w.within("2s")
	w.eventuallyUndone(clusters[0], old)
	w.deploysAs(metav1.ConditionFalse, clusters[0]) // The cluster itself is broken.
	w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) { assert.Len(c, status.Undone, 1) })
	w.eventuallySays(clusters[0], metav1.Condition{
		Type: "Progressing", Status: metav1.ConditionTrue, Reason: "Progressing", Message: "work is not ready",
	})
	version := w.addOn(clusters[0]).ResourceVersion
	// Each change of the policy makes a plan and a pass. The last one shows that it was made.
	for _, reason := range []string{"one", "two", "three"} {
		w.ruled(func(s *policies.AddOnPolicySpec) { s.Paused = &policies.Pause{Reason: reason} })
		w.eventuallyHolds(clusters[1], old, "is paused: "+reason)
	}
	assert.Equal(t, version, w.addOn(clusters[0]).ResourceVersion, "the status of the one that returned rests")
}

// Shows: policies/undo-all
func TestAllClustersReturnWhenTheRolloutHasStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(3, progressive(1, "1h"))
	old := w.hash(w.usesTemplate("t"))
	first := w.rules(onFailure(policies.ActionUndoAll))

	w.edit("two")
	second := w.eventuallyAsks(first)
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	w.deploys(clusters[0]) // It is well with it, and the next one is not.
	w.eventuallyDesires(clusters[1], w.usesTemplate("t"))
	w.within("3s")
	w.eventuallyHas(clusters[1], old)
	w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) {
		if assert.Len(c, status.Undone, 1) {
			assert.Equal(c, second, status.Undone[0].Content)
			assert.Equal(c, policies.ByPolicy, status.Undone[0].By)
			assert.Equal(c, policies.ActionUndoAll, status.Undone[0].Action)
			assert.Equal(c, []string{w.namespace + "/p"}, status.Undone[0].Placements)
			assert.Contains(c, status.Undone[0].Why, "1 of 3 clusters of the placement failed or timed out")
			assert.EqualValues(c, 3, status.Undone[0].Clusters)
		}
	})
	w.deploys(clusters[1])
	w.eventuallyHas(clusters[0], old)
	w.deploys(clusters[0])
	w.eventuallyCounts(0, "selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout. content "+
		second+" was undone, and its clusters return to what completed before")
	for _, cluster := range clusters {
		w.unfailed(cluster)
		w.desires(cluster, old)
	}
	assert.Equal(t, first, w.completed()[0].Content, "what was undone did not complete")
}

// It stops the rollout that the tests share, so it runs alone.
//
// Shows: policies/undo-restart
func TestAnUndoGoesOnWhereTheHubManagerIsRestarted(t *testing.T) {
	w := newWorld(t)
	clusters := w.inWaves(3, progressive(1, "1h"))
	old := w.hash(w.usesTemplate("t"))
	first := w.rules(onFailure(policies.ActionUndoAll))
	w.edit("two")
	second := w.eventuallyAsks(first)
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	w.deploys(clusters[0])
	w.eventuallyDesires(clusters[1], w.usesTemplate("t"))
	w.within("3s")
	w.eventuallyHas(clusters[1], old) // One after the other: the first one has still what was undone.
	w.desires(clusters[0], w.hash(w.usesTemplate("t")))

	program.Stop()
	program.Start()
	w.deploys(clusters[1])
	w.eventuallyHas(clusters[0], old)
	program.Stop()
	program.Start()
	w.deploys(clusters[0])
	w.eventuallyCounts(0, "selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
	w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) {
		if assert.Len(c, status.Undone, 1) {
			assert.Equal(c, second, status.Undone[0].Content)
		}
	})
	assert.Equal(t, first, w.completed()[0].Content)
}

// It stops the rollout that the tests share, so it runs alone.
//
// Shows: policies/undo-restart
func TestWhoReturnedStaysSoWhereTheHubManagerIsRestarted(t *testing.T) {
	w := newWorld(t)
	clusters := w.inWaves(2, progressive(1, "2s"))
	old := w.hash(w.usesTemplate("t"))
	first := w.rules(onFailure(policies.ActionUndo))
	w.edit("two")
	w.eventuallyAsks(first)
	w.eventuallyUndone(clusters[0], old)
	w.deploys(clusters[0])
	w.eventuallyCompleted(clusters[0])
	version := w.addOn(clusters[0]).ResourceVersion
	program.Stop()
	program.Start()
	w.ruled(func(s *policies.AddOnPolicySpec) { s.Paused = &policies.Pause{Reason: "after the restart"} })
	w.eventuallyHolds(clusters[1], old, "is paused: after the restart")
	assert.Equal(t, version, w.addOn(clusters[0]).ResourceVersion)
}

// completed returns what completed for the only placement.
func (w *world) completed() []policies.CompletedContent {
	w.Helper()
	p := w.policy(policies.AddOnPolicySpec{})
	require.NoError(w, plane.Client.Get(w.Context(), client.ObjectKeyFromObject(p), p))
	require.Len(w, p.Status.Placements, 1)
	return p.Status.Placements[0].Completed
}

// Shows: policies/undo-person
func TestAPersonUndoesAContentThatCompleted(t *testing.T) {
	t.Parallel()
	for name, strategy := range strategies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			clusters := w.inWaves(2, strategy)
			old := w.hash(w.usesTemplate("t"))
			first := w.rules(policies.AddOnPolicySpec{})
			w.edit("two")
			w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
			w.deploys(clusters[0])
			w.eventuallyDesires(clusters[1], w.usesTemplate("t"))
			w.deploys(clusters[1])
			second := w.eventuallyAsks(first)
			require.Equal(t, second, w.eventuallyCompletes())

			w.ruled(func(s *policies.AddOnPolicySpec) { s.Undo, s.Paused = []string{second}, &policies.Pause{} })
			for _, cluster := range clusters {
				w.eventuallyHolds(cluster, w.hash(w.usesTemplate("t")), "AddOnPolicy "+w.addon+" is paused")
			}
			w.ruled(func(s *policies.AddOnPolicySpec) { s.Paused, s.Approval = nil, policies.ApprovalPerRollout })
			for _, cluster := range clusters {
				w.eventuallyHas(cluster, old)
				w.deploys(cluster)
				w.eventuallyCompleted(cluster)
			}
			w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) {
				if assert.Len(c, status.Undone, 1) {
					assert.Equal(c, policies.ByPerson, status.Undone[0].By)
					assert.EqualValues(c, 2, status.Undone[0].Clusters)
				}
			})

			w.ruled(func(s *policies.AddOnPolicySpec) { s.Undo, s.Approval = nil, "" })
			w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
			w.deploys(clusters[0])
			w.eventuallyDesires(clusters[1], w.usesTemplate("t"))
			w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) { assert.Empty(c, status.Undone) })
		})
	}
}

// Shows: policies/undo-person
func TestAnAddOnThatAPersonInstalledReturnsAsWell(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster := w.clusters(1)[0]
	w.create(w.template("t", "one"), w.management([]addonv1alpha1.AddOnConfig{w.usesTemplate("t")}))
	w.installs(cluster)
	w.eventuallyDesires(cluster, w.usesTemplate("t"))
	old := w.hash(w.usesTemplate("t"))
	w.deploys(cluster)
	w.eventuallyCompleted(cluster)
	w.create(w.policy(policies.AddOnPolicySpec{}))
	var first string
	w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) {
		if assert.Len(c, status.Placements, 1) {
			first = status.Placements[0].Content
			assert.Equal(c, policies.NoPlacement, status.Placements[0].Placement)
		}
	})
	w.edit("two")
	second := w.eventuallyAsks(first)
	w.eventuallyDesires(cluster, w.usesTemplate("t"))
	w.ruled(func(s *policies.AddOnPolicySpec) { s.Undo = []string{second} })
	w.eventuallyHas(cluster, old)
	w.deploys(cluster)
	w.eventuallyCompleted(cluster)
	w.desires(cluster, old)
}

// Shows: policies/undo-name, policies/undo-gone
func TestAnUndoReturnsToATemplateOfAnotherNameThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(2, progressive(1, "1h"))
	old := w.hash(w.usesTemplate("t"))
	first := w.rules(onFailure(policies.ActionUndo))
	w.create(w.template("u", "two"))
	w.updateManagement(func(c *addonv1alpha1.ClusterManagementAddOn) {
		c.Spec.InstallStrategy.Placements[0].Configs = []addonv1alpha1.AddOnConfig{w.usesTemplate("u")}
	})
	w.eventuallyDesires(clusters[0], w.usesTemplate("u"))
	require.NoError(t, plane.Client.Delete(t.Context(), w.template("t", "")))
	w.eventuallyAsks(first)
	w.within("2s")
	w.eventuallyUndone(clusters[0], old)
	assert.Equal(t, w.addon+"-t", w.addOn(clusters[0]).Status.ConfigReferences[0].DesiredConfig.Name)
	w.deploys(clusters[0])
	w.eventuallyCompleted(clusters[0])
	w.desires(clusters[1], old)
}

// Shows: policies/undo-nothing
func TestWhereNothingCompletedBeforeTheClusterKeepsWhatFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.clusters(1)
	entry := w.strategy("p", w.usesTemplate("t"))
	entry.RolloutStrategy = progressive(1, "2s")
	w.create(w.policy(onFailure(policies.ActionUndo)), w.template("t", "one"), w.management(nil, entry))
	w.selects("p", clusters...)
	w.installs(clusters...)
	w.eventuallySays(clusters[0], metav1.Condition{
		Type: names.ConditionRolloutFailed, Status: metav1.ConditionTrue, Reason: "TimedOut",
		Message: "it is not undone: no content completed before it",
	})
	w.desires(clusters[0], w.hash(w.usesTemplate("t")))
}

// Shows: policies/undo-tries
func TestAfterSoManyTriesTheNextContentWaitsForAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(1, progressive(1, "3s"))
	old := w.hash(w.usesTemplate("t"))
	spec := onFailure(policies.ActionUndo)
	spec.OnFailure.MaxTries = 1
	first := w.rules(spec)
	w.edit("two")
	second := w.eventuallyAsks(first)
	w.eventuallyUndone(clusters[0], old)
	w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) { assert.Len(c, status.Undone, 1) })
	w.edit("three")
	third := w.eventuallyAsks(second)
	w.eventuallyHolds(clusters[0], old, "AddOnPolicy "+w.addon+" undid 1 contents in a row, and spec.onFailure.maxTries is 1; "+
		"content "+third+" begins when spec.approved has it")
	contents := w.eventuallyWaits(1)
	require.Equal(t, third, contents[0].Name)
	w.within("1h")
	w.ruled(func(s *policies.AddOnPolicySpec) { s.Approved = []string{third} })
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	w.deploys(clusters[0])
	w.eventuallyCompleted(clusters[0])
	w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) {
		assert.Empty(c, status.Undone, "a content completed")
	})
}

// A person undoes a content that completed while the add-on is paused, as the page for operators has it. Meanwhile its
// author publishes a third one, which fails.
//
// Shows: policies/undo-never
func TestWhatAPersonUndidIsNotGivenAgainByAReturn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(2, progressive(1, "1h"))
	old := w.hash(w.usesTemplate("t"))
	first := w.rules(onFailure(policies.ActionUndo))
	w.edit("two")
	bad := w.hash(w.usesTemplate("t"))
	for _, cluster := range clusters {
		w.eventuallyDesires(cluster, w.usesTemplate("t"))
		w.deploys(cluster)
	}
	second := w.eventuallyAsks(first)
	require.Equal(t, second, w.eventuallyCompletes())

	w.ruled(func(s *policies.AddOnPolicySpec) {
		s.Undo, s.Paused = []string{second}, &policies.Pause{Reason: "incident 7"}
	})
	w.eventuallyHolds(clusters[0], bad, "is paused: incident 7")
	w.edit("three")
	w.eventuallyAsks(second)
	w.ruled(func(s *policies.AddOnPolicySpec) { s.Paused = nil })
	w.eventuallyDesires(clusters[0], w.usesTemplate("t")) // and no agent applies it
	w.within("2s")
	w.eventuallyUndone(clusters[0], old)
}

// Its author, who may not write policies, deletes the ClusterManagementAddOn without its add-ons, and creates it again.
//
// Shows: policies/undo-remembered
func TestAPolicyRemembersWhatItUndidWithoutADefinition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(2, progressive(1, "2s"))
	old := w.hash(w.usesTemplate("t"))
	first := w.rules(onFailure(policies.ActionUndoAll))
	w.edit("two")
	second := w.eventuallyAsks(first)
	w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) { assert.Len(c, status.Undone, 1) })
	w.eventuallyHas(clusters[0], old)
	w.deploys(clusters[0])
	w.eventuallyCompleted(clusters[0])

	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: w.addon}}
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(definition), definition))
	again := definition.DeepCopy()
	again.ObjectMeta = metav1.ObjectMeta{Name: definition.Name, Annotations: definition.Annotations, Labels: definition.Labels}
	require.NoError(t, plane.Client.Delete(t.Context(), definition, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	// A pass sees that it is gone, and one that it is there again.
	for pass := range 2 {
		if pass == 1 {
			suite.Eventually(t, func() error { return plane.Client.Create(t.Context(), again.DeepCopy()) })
		}
		w.ruled(func(s *policies.AddOnPolicySpec) { s.Approved = append(s.Approved, fmt.Sprintf("%040x", pass)) })
		p := w.policy(policies.AddOnPolicySpec{})
		require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p))
		w.eventuallyRuled(func(c assert.TestingT, status policies.AddOnPolicyStatus) {
			assert.Equal(c, p.Generation, status.ObservedGeneration)
		})
		require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p))
		require.Len(t, p.Status.Undone, 1)
		assert.Equal(t, second, p.Status.Undone[0].Content)
		assert.Equal(t, first, p.Status.Placements[0].Completed[0].Content)
	}
	w.eventuallyCounts(0, "selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout. content "+
		second+" was undone, and its clusters return to what completed before")
	for _, cluster := range clusters {
		w.desires(cluster, old)
	}
}
