package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

// policy is the AddOnPolicy of the test.
func (w *world) policy(spec policies.AddOnPolicySpec) *policies.AddOnPolicy {
	return &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.addon}, Spec: spec}
}

// ruled changes the AddOnPolicy of the test.
func (w *world) ruled(change func(*policies.AddOnPolicySpec)) {
	w.Helper()
	update(w, w.policy(policies.AddOnPolicySpec{}), func(p *policies.AddOnPolicy) { change(&p.Spec) })
}

// eventuallyWaits waits until the status of the policy counts clusters that wait, and returns the contents.
func (w *world) eventuallyWaits(clusters int) (contents []policies.Content) {
	w.Helper()
	suite.Eventually(w, suite.Checks(func(c assert.TestingT) {
		p := w.policy(policies.AddOnPolicySpec{})
		if assert.NoError(c, plane.Client.Get(w.Context(), client.ObjectKeyFromObject(p), p)) {
			assert.Equal(c, p.Generation, p.Status.ObservedGeneration)
			assert.EqualValues(c, clusters, p.Status.Waiting)
			contents = p.Status.Contents
		}
	}))
	return contents
}

// labels changes the labels of a cluster.
func (w *world) labels(cluster string, labels map[string]string) {
	w.Helper()
	update(w, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, func(c *clusterv1.ManagedCluster) {
		c.Labels = labels
	})
}

// strategies are those of rollouts that admit clusters in turns, and of those where each has its target at once.
func strategies() map[string]clusterv1alpha1.RolloutStrategy {
	return map[string]clusterv1alpha1.RolloutStrategy{"in turns": progressive(1, "2s"), "all at once": {}}
}

// Shows: policies/policy-pause
func TestAPausedAddOnBeginsNoChange(t *testing.T) {
	t.Parallel()
	for name, strategy := range strategies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			clusters := w.inWaves(2, strategy)
			old := w.hash(w.usesTemplate("t"))
			w.create(w.policy(policies.AddOnPolicySpec{Paused: &policies.Pause{Reason: "incident 7"}}))
			w.eventuallyWaits(0)

			w.edit("two")
			for _, cluster := range clusters {
				w.eventuallyHolds(cluster, old, "waits for its turn in the rollout: AddOnPolicy "+w.addon+" is paused: incident 7")
			}
			contents := w.eventuallyWaits(2)
			require.Len(t, contents, 1)
			assert.Equal(t, []string{"addontemplates.addon.open-cluster-management.io//" + w.addon + "-t"}, contents[0].Configurations)

			w.ruled(func(s *policies.AddOnPolicySpec) { s.Paused = nil })
			w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
			w.deploys(clusters[0])
			w.eventuallyDesires(clusters[1], w.usesTemplate("t"))
			w.deploys(clusters[1])
			w.eventuallyCounts(0, "selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout.")
			w.eventuallyWaits(0)
		})
	}
}

// Shows: policies/policy-finishes
func TestWhatHasBegunIsFinishedWhilePaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(2, progressive(1, ""))
	old := w.hash(w.usesTemplate("t"))
	w.create(w.policy(policies.AddOnPolicySpec{}))
	w.edit("two")
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	w.ruled(func(s *policies.AddOnPolicySpec) { s.Paused = &policies.Pause{} })
	w.eventuallyHolds(clusters[1], old, "is paused")
	w.deploys(clusters[0])
	w.eventuallyCompleted(clusters[0])
	w.desires(clusters[1], old)
	require.NoError(t, plane.Client.Delete(w.Context(), w.policy(policies.AddOnPolicySpec{})))
	w.eventuallyDesires(clusters[1], w.usesTemplate("t"))
}

// Shows: policies/policy-approval
func TestAnApprovalAdmitsOneContent(t *testing.T) {
	t.Parallel()
	for name, strategy := range strategies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			clusters := w.inWaves(2, strategy)
			old := w.hash(w.usesTemplate("t"))
			w.create(w.policy(policies.AddOnPolicySpec{Approval: policies.ApprovalPerRollout}))
			w.edit("two")
			first := w.eventuallyWaits(2)
			require.Len(t, first, 1)
			assert.False(t, first[0].Approved)

			w.edit("three") // before anybody approves
			w.ruled(func(s *policies.AddOnPolicySpec) { s.Approved = []string{first[0].Name} })
			second := w.eventuallyWaits(2)
			require.Len(t, second, 1)
			require.NotEqual(t, first[0].Name, second[0].Name, "other content has another name")
			for _, cluster := range clusters {
				w.eventuallyHolds(cluster, old, "does not approve content "+second[0].Name)
			}

			w.ruled(func(s *policies.AddOnPolicySpec) { s.Approved = append(s.Approved, second[0].Name) })
			w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
			w.deploys(clusters[0])
			w.eventuallyDesires(clusters[1], w.usesTemplate("t"))
		})
	}
}

// Shows: policies/window-closed, policies/window-status
func TestClustersChangeInTheirWindows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(2, clusterv1alpha1.RolloutStrategy{})
	old := w.hash(w.usesTemplate("t"))
	window := &policies.MaintenanceWindow{
		ObjectMeta: metav1.ObjectMeta{Name: w.addon},
		Spec: policies.MaintenanceWindowSpec{
			Kind: "Deny", Schedule: "* * * * *", Duration: metav1.Duration{Duration: time.Hour}, AddOns: []string{w.addon},
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"frozen": w.addon}},
		},
	}
	w.create(window)
	w.labels(clusters[1], map[string]string{"frozen": w.addon})
	suite.Eventually(w, suite.Checks(func(c assert.TestingT) {
		if assert.NoError(c, plane.Client.Get(w.Context(), client.ObjectKeyFromObject(window), window)) {
			assert.EqualValues(c, 1, window.Status.Clusters)
			assert.True(c, window.Status.Active)
			assert.Empty(c, window.Status.Problem)
		}
	}))
	w.edit("two")
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	w.eventuallyHolds(clusters[1], old, "MaintenanceWindow "+w.addon+" denies it")

	w.labels(clusters[1], map[string]string{"frozen": "no"})
	w.eventuallyDesires(clusters[1], w.usesTemplate("t"))
}

// Shows: policies/policy-manual
func TestAnAddOnThatAPersonInstalledWaitsAsWell(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.clusters(1)
	w.create(w.template("t", "one"), w.management([]addonv1alpha1.AddOnConfig{w.usesTemplate("t")}))
	w.installs(clusters...)
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	old := w.hash(w.usesTemplate("t"))
	w.create(w.policy(policies.AddOnPolicySpec{Paused: &policies.Pause{}}))
	w.eventuallyWaits(0)
	w.edit("two")
	w.eventuallyHolds(clusters[0], old, "AddOnPolicy "+w.addon+" is paused")
	w.ruled(func(s *policies.AddOnPolicySpec) { s.Paused = nil })
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
}

// Shows: policies/policy-refused
func TestWhatNobodyCanFollowIsRefused(t *testing.T) {
	t.Parallel()
	window := func(change func(*policies.MaintenanceWindowSpec)) *policies.MaintenanceWindow {
		o := &policies.MaintenanceWindow{ObjectMeta: metav1.ObjectMeta{GenerateName: "bad-"}, Spec: policies.MaintenanceWindowSpec{
			Kind: "Allow", Schedule: "@daily", Duration: metav1.Duration{Duration: time.Hour},
		}}
		change(&o.Spec)
		return o
	}
	content := strings.Repeat("0", 40)
	policy := func(spec policies.AddOnPolicySpec) *policies.AddOnPolicy {
		return &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "bad-policy"}, Spec: spec}
	}
	for sentence, object := range map[string]client.Object{
		"a content cannot be in undo and in retry": policy(policies.AddOnPolicySpec{
			Undo: []string{content}, Retry: []string{content},
		}),
		"after is from 0s to 168h": policy(policies.AddOnPolicySpec{
			OnFailure: &policies.OnFailure{After: metav1.Duration{Duration: 169 * time.Hour}},
		}),
		"spec.onFailure.action: Unsupported value": policy(policies.AddOnPolicySpec{
			OnFailure: &policies.OnFailure{Action: "Retry"},
		}),
		"spec.removals: Unsupported value": policy(policies.AddOnPolicySpec{Removals: "Never"}),
		"an add-on cannot depend on itself": policy(policies.AddOnPolicySpec{
			DependsOn: []policies.Dependency{{Name: "bad-policy"}},
		}),
		"Configured, Degraded and Progressing say nothing": policy(policies.AddOnPolicySpec{
			DependsOn: []policies.Dependency{{Name: "a", Condition: "Degraded"}},
		}),
		"spec.dependsOn[1]: Duplicate value": policy(policies.AddOnPolicySpec{
			DependsOn: []policies.Dependency{{Name: "network"}, {Name: "network"}},
		}),
		"an optional dependency cannot be brought along": policy(policies.AddOnPolicySpec{
			DependsOn: []policies.Dependency{{Name: "network", Type: policies.DependencyOptional, Install: true}},
		}),
		"kind": window(func(s *policies.MaintenanceWindowSpec) { s.Kind = "Maybe" }),
		"allowed are 1m to 8784h": window(func(s *policies.MaintenanceWindowSpec) {
			s.Duration.Duration = time.Second
		}),
		"name the time zone, or the claim that has it, and not both": window(func(s *policies.MaintenanceWindowSpec) {
			s.TimeZone, s.TimeZoneClaim = "UTC", "zone"
		}),
		"approved": &policies.AddOnPolicy{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "bad-"}, Spec: policies.AddOnPolicySpec{Approved: []string{"all"}},
		},
		"approval": &policies.AddOnPolicy{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "bad-"}, Spec: policies.AddOnPolicySpec{Approval: "Never"},
		},
	} {
		assert.ErrorContains(t, plane.Client.Create(t.Context(), object), sentence)
	}
}
