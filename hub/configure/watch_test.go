package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

func decision(placement string, clusters ...string) *clusterv1beta1.PlacementDecision {
	d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Labels: map[string]string{names.LabelPlacement: placement},
	}}
	for _, cluster := range clusters {
		d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	return d
}

func TestChangedClusters(t *testing.T) {
	none := &clusterv1beta1.PlacementDecision{}
	assert.ElementsMatch(t, []string{"a", "b"}, changedClusters(none, decision("p", "a", "b")))
	assert.ElementsMatch(t, []string{"a", "b"}, changedClusters(decision("p", "a", "b"), none))
	assert.ElementsMatch(t, []string{"a", "c"}, changedClusters(decision("p", "a", "b"), decision("p", "b", "c")))
	assert.Empty(t, changedClusters(decision("p", "a", "b"), decision("p", "b", "a")))
	assert.ElementsMatch(t, []string{"a"}, changedClusters(decision("p", "a"), decision("q", "a")))
}

func TestInstructionsChanged(t *testing.T) {
	cma := fixture.NewCMA([]addonv1beta1.AddOnConfig{fixture.Template("t"), fixture.ConfigMap("c")}, fixture.Placement("p", fixture.ConfigMap("c")))
	cma.Status.DefaultConfigReferences = []addonv1beta1.DefaultConfigReference{
		{ConfigGroupResource: fixture.Template("").ConfigGroupResource, DesiredConfig: fixture.Hashed(fixture.Template("t"), "h")},
		{ConfigGroupResource: fixture.ConfigMap("").ConfigGroupResource, DesiredConfig: fixture.Hashed(fixture.ConfigMap("c"), "")},
	}
	cma.Status.InstallProgressions = []addonv1beta1.InstallProgression{{
		PlacementRef: fixture.Placement("p").PlacementRef,
		ConfigReferences: []addonv1beta1.InstallConfigReference{
			{ConfigGroupResource: fixture.ConfigMap("").ConfigGroupResource, DesiredConfig: fixture.Hashed(fixture.ConfigMap("c"), "")},
		},
	}}
	tests := map[string]struct {
		change func(*addonv1beta1.ClusterManagementAddOn)
		want   bool
	}{
		"a counter": {change: func(c *addonv1beta1.ClusterManagementAddOn) {
			c.Status.InstallProgressions[0].Conditions = []metav1.Condition{fixture.IsTrue("Progressing")}
		}},
		"a hash of our own": {change: func(c *addonv1beta1.ClusterManagementAddOn) {
			c.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash = "new"
		}},
		"another annotation": {change: func(c *addonv1beta1.ClusterManagementAddOn) {
			c.Annotations = map[string]string{"a": "b"}
		}},
		"a reported hash of a default": {change: func(c *addonv1beta1.ClusterManagementAddOn) {
			c.Status.DefaultConfigReferences[1].DesiredConfig.SpecHash = "new"
		}, want: true},
		"a reported hash of a placement": {change: func(c *addonv1beta1.ClusterManagementAddOn) {
			c.Status.InstallProgressions[0].ConfigReferences[0].DesiredConfig.SpecHash = "new"
		}, want: true},
		"the spec": {change: func(c *addonv1beta1.ClusterManagementAddOn) { c.Generation++ }, want: true},
		"the life cycle": {change: func(c *addonv1beta1.ClusterManagementAddOn) {
			c.Annotations = map[string]string{names.AnnotationLifecycle: "self"}
		}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changed := cma.DeepCopy()
			test.change(changed)
			for _, wire := range []addonapi.Wire{addonapi.WireAlpha, addonapi.WireBeta} {
				update := event.UpdateEvent{ObjectOld: cma, ObjectNew: changed}
				if wire == addonapi.WireAlpha {
					update.ObjectOld, update.ObjectNew = addonapi.ClusterManagementAddOnToAlpha(cma), addonapi.ClusterManagementAddOnToAlpha(changed)
				}
				assert.Equal(t, test.want, instructionsChanged().Update(update), string(wire))
			}
		})
	}
}
