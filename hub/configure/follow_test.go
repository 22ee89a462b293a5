package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/names"
)

func configCalled(name string) addonv1beta1.AddOnConfig {
	return addonv1beta1.AddOnConfig{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: addonv1beta1.GroupName, Resource: "addondeploymentconfigs"},
		ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: "default", Name: name},
	}
}

func referenceTo(name, hash string) addonv1beta1.ConfigReference {
	config := configCalled(name)
	return addonv1beta1.ConfigReference{
		ConfigGroupResource: config.ConfigGroupResource,
		DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: config.ConfigReferent, SpecHash: hash},
	}
}

func TestWhatAFollowerWaitsFor(t *testing.T) {
	condition := func(status metav1.ConditionStatus, text string) []metav1.Condition {
		return []metav1.Condition{{
			Type: addonv1beta1.ManagedClusterAddOnConditionConfigured, Status: status, Message: text,
		}}
	}
	managed := &addonv1beta1.ClusterManagementAddOn{}
	self := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{names.AnnotationLifecycle: "self"},
	}}
	has := []addonv1beta1.ConfigReference{referenceTo("a", "1")}
	for sentence, tc := range map[string]struct {
		cma        *addonv1beta1.ClusterManagementAddOn
		conditions []metav1.Condition
		references []addonv1beta1.ConfigReference
		held, wait string
	}{
		"the hub manager has not looked yet": {
			cma: managed, wait: "waiting for the hub manager: it has not configured the add-on yet (condition Configured)",
		},
		"it is configured":                           {cma: managed, conditions: condition(metav1.ConditionTrue, "ok"), references: has},
		"it is configured, and has no configuration": {cma: managed, conditions: condition(metav1.ConditionTrue, "ok")},
		"the rollout keeps what it has": {
			cma: managed, conditions: condition(metav1.ConditionFalse, "not its turn"), references: has, held: "not its turn",
		},
		"the rollout keeps it from the first configuration": {
			cma: managed, conditions: condition(metav1.ConditionFalse, "not its turn"),
			wait: "waiting for the hub manager: not its turn",
		},
		"it manages itself": {cma: self},
		"the definition is gone, and it keeps what it has": {
			references: has, held: "there is no ClusterManagementAddOn a, which defines what the add-on runs with",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := followed{cma: tc.cma, addOn: &addonv1beta1.ManagedClusterAddOn{
				ObjectMeta: metav1.ObjectMeta{Name: "a"},
				Status:     addonv1beta1.ManagedClusterAddOnStatus{Conditions: tc.conditions, ConfigReferences: tc.references},
			}}
			held, wait := f.held()
			assert.Equal(t, tc.held, held)
			assert.Equal(t, tc.wait, wait)
		})
	}
}

func TestAFollowerReadsOnlyWhatASpecNames(t *testing.T) {
	f := followed{
		addOn: &addonv1beta1.ManagedClusterAddOn{Spec: addonv1beta1.ManagedClusterAddOnSpec{
			Configs: []addonv1beta1.AddOnConfig{configCalled("own")},
		}},
		cma: &addonv1beta1.ClusterManagementAddOn{Spec: addonv1beta1.ClusterManagementAddOnSpec{
			DefaultConfigs: []addonv1beta1.AddOnConfig{configCalled("default")},
			InstallStrategy: addonv1beta1.InstallStrategy{Placements: []addonv1beta1.PlacementStrategy{
				{Configs: []addonv1beta1.AddOnConfig{configCalled("canary")}},
			}},
		}},
	}
	for _, name := range []string{"own", "default", "canary"} {
		assert.True(t, f.names(configCalled(name)), name)
	}
	assert.False(t, f.names(configCalled("of-somebody-else")))
	f.cma = nil
	assert.True(t, f.names(configCalled("own")))
	assert.False(t, f.names(configCalled("default")))
}

func TestAFollowerRecordsWhatAHubManagerLeavesToIt(t *testing.T) {
	f := followed{
		addOn: &addonv1beta1.ManagedClusterAddOn{},
		states: addonconfig.States{
			configCalled("own"): {Hash: "new", Generation: 3}, configCalled("gone"): {Missing: true},
		},
	}
	after := &addonv1beta1.ManagedClusterAddOn{Status: addonv1beta1.ManagedClusterAddOnStatus{
		ConfigReferences: []addonv1beta1.ConfigReference{
			referenceTo("own", "old"), referenceTo("gone", "old"), referenceTo("of-a-placement", "old"), {},
		},
	}}
	f.record(after, addon.Progress{})
	want := referenceTo("own", "new")
	want.LastObservedGeneration = 3
	assert.Equal(t, []addonv1beta1.ConfigReference{
		want, referenceTo("gone", "old"), referenceTo("of-a-placement", "old"), {},
	}, after.Status.ConfigReferences)
	assert.Empty(t, after.Status.Conditions)
}
