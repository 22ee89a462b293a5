package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

// requires is a policy of an add-on that depends on another one.
func (w *world) requires(other *world, change ...func(*policies.Dependency)) *policies.AddOnPolicy {
	d := policies.Dependency{Name: other.addon}
	for _, c := range change {
		c(&d)
	}
	return w.policy(policies.AddOnPolicySpec{DependsOn: []policies.Dependency{d}})
}

func optional(d *policies.Dependency) { d.Type = policies.DependencyOptional }

// defined is a world with the definition of an add-on on clusters of another world, or its own, in turns or all at once.
func (w *world) defined(strategy *clusterv1alpha1.RolloutStrategy, clusters ...string) *world {
	w.Helper()
	w.create(w.template("t", "one"))
	if strategy == nil {
		w.create(w.management([]addonv1alpha1.AddOnConfig{w.usesTemplate("t")}))
		return w
	}
	w.selects("p", clusters...)
	entry := w.strategy("p", w.usesTemplate("t"))
	entry.RolloutStrategy = *strategy
	w.create(w.management(nil, entry))
	return w
}

// says plays the agent: the add-on on a cluster has a condition.
func (w *world) says(cluster, kind string, status metav1.ConditionStatus, reason string) {
	w.Helper()
	require.NoError(w, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before := w.addOn(cluster)
		after := before.DeepCopy()
		meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: "says the test",
		})
		_, err := plane.AddOns.PatchAddOnStatus(w.Context(), before, after)
		return err
	}))
}

// eventuallyWaitsWithout waits until the add-on on a cluster has no configuration and says why.
func (w *world) eventuallyWaitsWithout(cluster, why string) {
	w.Helper()
	w.eventually(cluster, func(c assert.TestingT, addOn *addonv1beta1.ManagedClusterAddOn) {
		assert.Empty(c, addOn.Status.ConfigReferences)
		if said := meta.FindStatusCondition(addOn.Status.Conditions, "Configured"); assert.NotNil(c, said) {
			assert.Equal(c, metav1.ConditionFalse, said.Status)
			assert.Contains(c, said.Message, why)
		}
	})
}

// eventuallyDegraded waits until condition Degraded of the add-on on a cluster has the reason; empty for no condition.
func (w *world) eventuallyDegraded(cluster, reason string) {
	w.Helper()
	w.eventually(cluster, func(c assert.TestingT, addOn *addonv1beta1.ManagedClusterAddOn) {
		said := meta.FindStatusCondition(addOn.Status.Conditions, "Degraded")
		if reason == "" {
			assert.Nil(c, said)
		} else if assert.NotNil(c, said) {
			assert.Equal(c, reason, said.Reason)
			assert.Equal(c, metav1.ConditionTrue, said.Status)
		}
	})
}

// eventuallyProblem waits until the status of the policy says what is wrong with it.
func (w *world) eventuallyProblem(want string) {
	w.Helper()
	suite.Eventually(w, suite.Checks(func(c assert.TestingT) {
		p := w.policy(policies.AddOnPolicySpec{})
		if assert.NoError(c, plane.Client.Get(w.Context(), client.ObjectKeyFromObject(p), p)) {
			assert.Equal(c, p.Generation, p.Status.ObservedGeneration)
			if want == "" {
				assert.Empty(c, p.Status.Problem)
			}
			assert.Contains(c, p.Status.Problem, want)
		}
	}))
}

// ways are how an add-on comes to its clusters: planned or not, by placements or by people.
func ways() map[string]*clusterv1alpha1.RolloutStrategy {
	turns := progressive(1, "")
	return map[string]*clusterv1alpha1.RolloutStrategy{"in turns": &turns, "all at once": {}, "by people": nil}
}

// Shows: policies/depends-install, policies/depends-degraded
func TestAnAddOnBeginsAfterItsDependency(t *testing.T) {
	t.Parallel()
	for name, strategy := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gateway, network := newWorld(t), newWorld(t)
			cluster := gateway.clusters(1)[0]
			gateway.create(gateway.requires(network))
			gateway.defined(strategy, cluster).installs(cluster)
			gateway.eventuallyWaitsWithout(cluster,
				"it depends on add-on "+network.addon+", of which there is no ClusterManagementAddOn")
			gateway.eventuallyProblem(network.addon + ", of which there is no ClusterManagementAddOn")
			gateway.eventuallyDegraded(cluster, gate.ReasonRequiredDependency)

			network.defined(&clusterv1alpha1.RolloutStrategy{}, cluster)
			gateway.eventuallyWaitsWithout(cluster, "which is not on this cluster")
			gateway.eventuallyProblem("")
			network.installs(cluster)
			gateway.eventuallyWaitsWithout(cluster, "which does not have condition Available")
			network.eventuallyDesires(cluster, network.usesTemplate("t"))
			network.says(cluster, "Available", metav1.ConditionTrue, "Yes")
			gateway.eventuallyWaitsWithout(cluster, "which does not have its configuration yet")
			gateway.eventuallyDegraded(cluster, "") // It is there, and well.
			network.deploys(cluster)
			gateway.eventuallyDesires(cluster, gateway.usesTemplate("t"))
			gateway.deploys(cluster)
			gateway.eventuallyCompleted(cluster)
		})
	}
}

// together are two add-ons on one cluster, of which the first depends on the second; both are complete.
func together(t *testing.T, strategy *clusterv1alpha1.RolloutStrategy, change ...func(*policies.Dependency),
) (gateway, network *world, cluster string) {
	t.Helper()
	gateway, network = newWorld(t), newWorld(t)
	cluster = gateway.clusters(1)[0]
	gateway.create(gateway.requires(network, change...))
	for _, w := range []*world{network, gateway} {
		w.defined(strategy, cluster).installs(cluster)
		w.eventuallyDesires(cluster, w.usesTemplate("t"))
		w.says(cluster, "Available", metav1.ConditionTrue, "Yes")
		w.deploys(cluster)
		w.eventuallyCompleted(cluster)
	}
	return gateway, network, cluster
}

// Shows: policies/depends-change, policies/depends-broken
func TestAnAddOnChangesAfterItsDependency(t *testing.T) {
	t.Parallel()
	for name, strategy := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gateway, network, cluster := together(t, strategy)
			old := gateway.hash(gateway.usesTemplate("t"))
			network.edit("two")
			gateway.edit("two")
			gateway.eventuallyHolds(cluster, old, "it depends on add-on "+network.addon+", which does not have its configuration yet")
			network.deploys(cluster)
			gateway.eventuallyDesires(cluster, gateway.usesTemplate("t"))
			gateway.deploys(cluster)
			gateway.eventuallyCompleted(cluster)

			// It breaks later: the add-on stays, says so, and does not begin to change.
			network.says(cluster, "Available", metav1.ConditionFalse, "No")
			gateway.eventuallyDegraded(cluster, gate.ReasonRequiredDependency)
			gateway.desires(cluster, gateway.hash(gateway.usesTemplate("t")))
			old = gateway.hash(gateway.usesTemplate("t"))
			gateway.edit("three")
			gateway.eventuallyHolds(cluster, old, "whose condition Available is False: says the test")
			network.says(cluster, "Available", metav1.ConditionTrue, "Yes")
			gateway.eventuallyDegraded(cluster, "")
			gateway.eventuallyDesires(cluster, gateway.usesTemplate("t"))
		})
	}
}

// A dependency that waits for a person is told with what it waits for.
func TestAnAddOnWaitsForADependencyThatIsPaused(t *testing.T) {
	t.Parallel()
	gateway, network, cluster := together(t, &clusterv1alpha1.RolloutStrategy{})
	network.create(network.policy(policies.AddOnPolicySpec{Paused: &policies.Pause{Reason: "incident 7"}}))
	network.eventuallyWaits(0)
	old := gateway.hash(gateway.usesTemplate("t"))
	network.edit("two")
	gateway.edit("two")
	gateway.eventuallyHolds(cluster, old, "it depends on add-on "+network.addon+
		", which waits for its turn in the rollout: AddOnPolicy "+network.addon+" is paused: incident 7")
	network.ruled(func(s *policies.AddOnPolicySpec) { s.Paused = nil })
	network.eventuallyDesires(cluster, network.usesTemplate("t"))
	network.deploys(cluster)
	gateway.eventuallyDesires(cluster, gateway.usesTemplate("t"))
}

// Shows: policies/depends-optional
func TestAnOptionalDependencyOrdersWhereTheClusterHasIt(t *testing.T) {
	t.Parallel()
	gateway, network := newWorld(t), newWorld(t)
	clusters := gateway.clusters(2)
	gateway.create(gateway.requires(network, optional))
	network.defined(&clusterv1alpha1.RolloutStrategy{}, clusters[1]).installs(clusters[1])
	network.eventuallyDesires(clusters[1], network.usesTemplate("t"))
	gateway.defined(&clusterv1alpha1.RolloutStrategy{}, clusters...).installs(clusters...)
	gateway.eventuallyDesires(clusters[0], gateway.usesTemplate("t"))
	gateway.eventuallyDegraded(clusters[0], "")
	gateway.eventuallyWaitsWithout(clusters[1], "which does not have condition Available")
	gateway.eventuallyDegraded(clusters[1], gate.ReasonDependency)
	require.NoError(t, plane.AddOns.DeleteAddOn(t.Context(), network.addOn(clusters[1])))
	gateway.eventuallyDesires(clusters[1], gateway.usesTemplate("t"))
	gateway.eventuallyDegraded(clusters[1], "")
}

// Shows: policies/depends-cycles
func TestACycleIsNamedAndHoldsUntilItIsBrokenUp(t *testing.T) {
	t.Parallel()
	for _, length := range []int{2, 3} {
		var all []*world
		for range length {
			all = append(all, newWorld(t))
		}
		cluster := all[0].clusters(1)[0]
		for i, w := range all {
			w.create(w.requires(all[(i+1)%length]))
			w.defined(&clusterv1alpha1.RolloutStrategy{}, cluster).installs(cluster)
		}
		for _, w := range all {
			w.eventuallyProblem("its dependencies are a cycle, which cannot be followed: ")
			w.eventuallyWaitsWithout(cluster, "its dependencies are a cycle, which cannot be followed: ")
			for _, other := range all {
				w.eventuallyProblem(other.addon + " > ")
			}
		}
		// Who depends on nothing any more begins, and then each after the one before.
		all[length-1].ruled(func(s *policies.AddOnPolicySpec) { s.DependsOn = nil })
		for i := range all {
			w := all[length-1-i]
			w.eventuallyProblem("")
			w.eventuallyDesires(cluster, w.usesTemplate("t"))
			w.says(cluster, "Available", metav1.ConditionTrue, "Yes")
			w.deploys(cluster)
		}
	}
}

// Shows: policies/depends-others
func TestADegradedThatTheAgentWritesStays(t *testing.T) {
	t.Parallel()
	gateway, network := newWorld(t), newWorld(t)
	cluster := gateway.clusters(1)[0]
	gateway.create(gateway.requires(network))
	gateway.defined(nil).installs(cluster)
	gateway.eventuallyDegraded(cluster, gate.ReasonRequiredDependency)
	gateway.says(cluster, "Degraded", metav1.ConditionTrue, "DiskFull")
	network.defined(nil)
	gateway.eventuallyWaitsWithout(cluster, "which is not on this cluster")
	gateway.eventuallyDegraded(cluster, "DiskFull")
}
