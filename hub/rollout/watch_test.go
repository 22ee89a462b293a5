package rollout

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/confighash"
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

func TestAddOnOfWork(t *testing.T) {
	at := func(namespace string, labels map[string]string) []ctrl.Request {
		return addOnOfWork(t.Context(), &workv1.ManifestWork{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: labels},
		})
	}
	want := []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: "c1", Name: "hello"}}}
	assert.Equal(t, want, at("c1", map[string]string{names.LabelAddonName: "hello"}))
	assert.Equal(t, want, at("host", map[string]string{
		names.LabelAddonName: "hello", names.LabelAddonNamespace: "c1",
	}))
	assert.Empty(t, at("c1", nil))
}

func TestWorkProgressed(t *testing.T) {
	references := []addonv1beta1.ConfigReference{desires(template("t"), "h")}
	base := work("w", 3, references)
	tests := map[string]struct {
		change func(*workv1.ManifestWork)
		want   bool
	}{
		"another resourceVersion only": {change: func(w *workv1.ManifestWork) { w.ResourceVersion = "2" }},
		"feedback of a manifest": {change: func(w *workv1.ManifestWork) {
			w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{}}
		}},
		"a new generation": {change: func(w *workv1.ManifestWork) { w.Generation = 4 }, want: true},
		"other hashes":     {change: func(w *workv1.ManifestWork) { w.Annotations = nil }, want: true},
		"it became another add-on's": {change: func(w *workv1.ManifestWork) {
			w.Labels = map[string]string{names.LabelAddonName: "x"}
		}, want: true},
		"it is not available any more": {change: func(w *workv1.ManifestWork) {
			w.Status.Conditions[1].Status = metav1.ConditionFalse
		}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changed := base.DeepCopy()
			test.change(changed)
			assert.Equal(t, test.want, workProgressed().Update(event.UpdateEvent{ObjectOld: base, ObjectNew: changed}))
		})
	}
}

func TestInstructionsChanged(t *testing.T) {
	cma := newCMA([]addonv1beta1.AddOnConfig{template("t"), configMap("c")}, placement("p", configMap("c")))
	cma.Status.DefaultConfigReferences = []addonv1beta1.DefaultConfigReference{
		{ConfigGroupResource: template("").ConfigGroupResource, DesiredConfig: hashed(template("t"), "h")},
		{ConfigGroupResource: configMap("").ConfigGroupResource, DesiredConfig: hashed(configMap("c"), "")},
	}
	cma.Status.InstallProgressions = []addonv1beta1.InstallProgression{{
		PlacementRef: placement("p").PlacementRef,
		ConfigReferences: []addonv1beta1.InstallConfigReference{
			{ConfigGroupResource: configMap("").ConfigGroupResource, DesiredConfig: hashed(configMap("c"), "")},
		},
	}}
	tests := map[string]struct {
		change func(*addonv1beta1.ClusterManagementAddOn)
		want   bool
	}{
		"a counter": {change: func(c *addonv1beta1.ClusterManagementAddOn) {
			c.Status.InstallProgressions[0].Conditions = []metav1.Condition{isTrue("Progressing")}
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

func TestIndexKeys(t *testing.T) {
	cma := newCMA([]addonv1beta1.AddOnConfig{template("t")}, placement("p", deployment("d")), placement("q"))
	keys := cmaConfigKeys(addonapi.ClusterManagementAddOnToAlpha(cma))
	assert.Equal(t, []string{
		"addontemplates.addon.open-cluster-management.io//t",
		"addondeploymentconfigs.addon.open-cluster-management.io/ns/d",
	}, keys)

	for i, config := range []addonv1beta1.AddOnConfig{template("t"), deployment("d")} {
		object, known := confighash.New(config.ConfigGroupResource)
		assert.True(t, known)
		object.SetName(config.Name)
		object.SetNamespace(config.Namespace)
		assert.Equal(t, keys[i], configOf(object), "an event finds who asks for the config")
	}
}
