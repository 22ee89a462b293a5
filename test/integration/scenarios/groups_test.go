package scenarios_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// byGroups is an add-on of groups.yaml that runs in its first version on all clusters; the function it returns upgrades
// it.
func byGroups(t *testing.T, addOn, size, strategy string) (story, func()) {
	t.Helper()
	s := story{T: t, addOn: addOn, file: "groups.yaml"}
	version := func(version string) { s.apply("SIZE", size, "VERSION", version, "STRATEGY", strategy) }
	version("v1")
	for _, cluster := range []string{east, local, west} {
		s.has("v1", cluster)
		s.runs(cluster)
	}
	s.counts("selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
	return s, func() { version("v2") }
}

// waits expects that the add-on on clusters waits for its turn, and keeps its first version.
func (s story) waits(why string, on ...string) {
	s.Helper()
	for _, cluster := range on {
		s.says(cluster, addonv1beta1.ManagedClusterAddOnConditionConfigured, metav1.ConditionFalse,
			"ConfigurationsNotConfigured", why)
	}
	s.keepsFirst(on...)
}

// Shows: hub/story-groups
func TestAnUpgradeMovesFromGroupToGroup(t *testing.T) {
	t.Parallel()
	s, upgrade := byGroups(t, "graupel", "1",
		`{type: ProgressivePerGroup, progressivePerGroup: {mandatoryDecisionGroups: [{groupName: canary}], minSuccessTime: 2s}}`)
	upgrade()
	s.has("v2", east)
	s.waits("mandatory decision groups come first (canary)", local, west)
	s.counts("configured addons 1/3 progressing...")
	for _, step := range []struct {
		runs, next string
		wait       []string
	}{{east, local, []string{west}}, {local, west, nil}} {
		letRun(t, step.runs, s.addOn)
		s.has("v2", step.next)
		s.waits("decision groups follow one another", step.wait...)
	}
	letRun(t, west, s.addOn)
	s.counts("selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
	s.deleteManagement()
}

// Shows: hub/story-share
func TestAnUpgradeMovesAShareOfTheClusters(t *testing.T) {
	t.Parallel()
	s, upgrade := byGroups(t, "sleet", "100%", `{type: Progressive, progressive: {maxConcurrency: 50%, minSuccessTime: 2s}}`)
	upgrade()
	s.has("v2", east, local)
	s.waits("maxConcurrency is 50%", west)
	s.counts("configured addons 2/3 progressing...")
	letRun(t, local, s.addOn)
	s.has("v2", west)
	letRun(t, east, s.addOn)
	letRun(t, west, s.addOn)
	s.counts("selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
	s.deleteManagement()
}
