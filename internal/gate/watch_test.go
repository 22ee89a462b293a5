package gate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// A plan over 3,000 clusters is not made for what agents write all the time.
//
// Shows: policies/depends-events
func TestWhichChangesOfAnAddOnThoseThatDependOnItAreToldOf(t *testing.T) {
	configured := func(a *addonv1beta1.ManagedClusterAddOn, says string) {
		a.Status.Conditions[1].Message = "Configurations updated and not configured yet: " + says
	}
	for sentence, tc := range map[string]struct {
		change func(*addonv1beta1.ManagedClusterAddOn)
		told   bool
	}{
		"a condition has another status": {func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.Conditions[0].Status = "False" }, true},
		"it says something else":         {func(a *addonv1beta1.ManagedClusterAddOn) { a.Status.Conditions[0].Message = "no pod" }, false},
		"a condition comes": {func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions = append(a.Status.Conditions, cond("Ready", "True", "Yes", ""))
		}, true},
		"it is deleted": {func(a *addonv1beta1.ManagedClusterAddOn) { a.DeletionTimestamp = &metav1.Time{Time: noon()} }, true},
		"a condition has another time": {func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: noon()}
		}, false},
		"it has another label": {func(a *addonv1beta1.ManagedClusterAddOn) { a.Labels = map[string]string{"a": "b"} }, false},
		"it has other objects": {func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Status.RelatedObjects = make([]addonv1beta1.ObjectReference, 1)
		}, false},
		"it waits for its turn no more": {
			func(a *addonv1beta1.ManagedClusterAddOn) { configured(a, "addontemplates t does not exist") }, true,
		},
		"it waits for something else": {
			func(a *addonv1beta1.ManagedClusterAddOn) { configured(a, "waits for its turn in the rollout: no slot") }, false,
		},
		"it is written once more": {func(a *addonv1beta1.ManagedClusterAddOn) { a.ResourceVersion = "2" }, false},
	} {
		was := addOn(cond("Available", "True", "Yes", ""), cond("Configured", "False", "ConfigurationsNotConfigured", ""))
		configured(was, "waits for its turn in the rollout: AddOnPolicy network is paused")
		is := was.DeepCopy()
		tc.change(is)
		assert.Equal(t, tc.told, gate.DependencyChanged().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}), sentence)
	}
}

func TestWhichChangesOfAPolicyChangeTheOrder(t *testing.T) {
	p := func(names ...string) *policies.AddOnPolicy {
		o := policy(policies.AddOnPolicySpec{})
		for _, name := range names {
			o.Spec.DependsOn = append(o.Spec.DependsOn, policies.Dependency{Name: name})
		}
		return o
	}
	going := p("a")
	going.DeletionTimestamp = &metav1.Time{Time: noon()}
	paused := p("a")
	paused.Spec.Paused = &policies.Pause{}
	changed := gate.OrderChanged()
	assert.True(t, changed.Create(event.CreateEvent{Object: p("a")}))
	assert.False(t, changed.Create(event.CreateEvent{Object: p()}))
	assert.True(t, changed.Delete(event.DeleteEvent{Object: p("a")}))
	for is, told := range map[*policies.AddOnPolicy]bool{p("b"): true, p(): true, going: true, p("a"): false, paused: false} {
		assert.Equal(t, told, changed.Update(event.UpdateEvent{ObjectOld: p("a"), ObjectNew: is}), "%v", is.Spec)
	}
}
