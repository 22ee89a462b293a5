package scenarios_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// onCanaries is an add-on of canary.yaml that runs in its first version on all clusters.
func onCanaries(t *testing.T, addOn, deadline string) story {
	t.Helper()
	s := story{T: t, addOn: addOn, file: "canary.yaml"}
	s.version("v1", deadline)
	for _, cluster := range []string{east, local, west} {
		s.has("v1", cluster)
		s.runs(cluster)
	}
	s.counts("selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
	return s
}

// version applies the file with a version in the placement, and a deadline.
func (s story) version(version, deadline string) {
	s.Helper()
	s.apply("VERSION", version, "DEADLINE", deadline)
}

// has waits until a version of the add-on is on clusters.
func (s story) has(version string, on ...string) {
	s.Helper()
	for _, cluster := range on {
		image(s.T, cluster, names.NamespaceAgentAddon, s.addOn, "registry.example.com/"+s.addOn+":"+version)
	}
}

// keepsFirst requires that clusters keep the first version for a while.
func (s story) keepsFirst(on ...string) {
	s.Helper()
	suite.Consistently(s, time.Second, func() error {
		var all []error
		for _, cluster := range on {
			all = append(all,
				hasImage(s.T, cluster, names.NamespaceAgentAddon, s.addOn, "registry.example.com/"+s.addOn+":v1"))
		}
		return errors.Join(all...)
	})
}

// Shows: hub/story-canary
func TestAnUpgradeBeginsOnTheCanary(t *testing.T) {
	t.Parallel()
	s := onCanaries(t, "rain", "10m")

	s.version("v2", "10m")
	s.has("v2", east)
	for _, cluster := range []string{local, west} {
		s.says(cluster, addonv1beta1.ManagedClusterAddOnConditionConfigured, metav1.ConditionFalse,
			"ConfigurationsNotConfigured", "mandatory decision groups come first (canary)")
	}
	s.keepsFirst(local, west)

	letRun(t, east, s.addOn)
	s.has("v2", local)
	s.keepsFirst(west)
	canary := s.says(east, addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionFalse,
		addonv1beta1.ProgressingReasonCompleted)
	next := s.says(local, addonv1beta1.ManagedClusterAddOnConditionConfigured, metav1.ConditionTrue,
		"ConfigurationsConfigured")
	assert.GreaterOrEqual(t, next.LastTransitionTime.Sub(canary.LastTransitionTime.Time), time.Second,
		"the canary soaks for two seconds, in whole seconds at least one")

	letRun(t, local, s.addOn)
	s.has("v2", west)
	letRun(t, west, s.addOn)
	s.counts("selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
	s.deleteManagement()
}

// Shows: hub/story-rollback
func TestACanaryThatFailsStopsTheUpgradeAndGoesBack(t *testing.T) {
	t.Parallel()
	s := onCanaries(t, "snow", "3s")

	s.version("v2", "3s")
	s.has("v2", east)
	s.counts("1 timeout", east)
	// The old pod keeps the Deployment available; the new one is not ready.
	s.says(east, addonv1beta1.ManagedClusterAddOnConditionProgressing, metav1.ConditionTrue,
		addonv1beta1.ProgressingReasonProgressing, s.addOn, "has 1 ready of 2 pods")
	s.keepsFirst(local, west)

	s.version("v1", "3s")
	s.has("v1", east)
	s.counts("selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
	for _, cluster := range []string{east, local, west} {
		s.runs(cluster)
	}
	s.keepsFirst(east, local, west)
	s.deleteManagement()
}
