package rollout

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
)

func TestConfigure(t *testing.T) {
	progressive := clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive}
	configured := isTrue("Configured")
	defaults := func(configs ...addonv1beta1.AddOnConfig) *addonv1beta1.ClusterManagementAddOn {
		return newCMA(configs)
	}
	registered := func(addon *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
		return with(addon, isTrue("RegistrationApplied"))
	}
	deleting := func(addon *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
		addon.DeletionTimestamp = new(metav1.NewTime(noon))
		return addon
	}
	type references = []addonv1beta1.ConfigReference
	tests := map[string]struct {
		facts  addOnFacts
		want   references
		status metav1.ConditionStatus // "" when the condition is left alone
		says   []string
	}{
		"no configs are a configuration too": {
			facts:  addOnFacts{addon: addOn("c1"), cma: defaults(), placement: -1},
			status: metav1.ConditionTrue, says: []string{"no configuration is asked for"},
		},
		"a config gets its hash and generation": {
			facts: addOnFacts{
				addon: addOn("c1"), cma: defaults(template("t")), placement: -1,
				found: configStates{template("t"): {hash: "h", generation: 4}},
			},
			want:   references{observed(desires(template("t"), "h"), 4)},
			status: metav1.ConditionTrue, says: []string{"1 of 1"},
		},
		"what was applied is kept for a config that stays, not for another one": {
			facts: addOnFacts{
				addon: addOn("c1", has(template("t"), "old"), has(deployment("gone"), "x")),
				cma:   defaults(template("t"), deployment("new")), placement: -1,
				found: configStates{template("t"): {hash: "h"}, deployment("new"): {hash: "n"}},
			},
			want: references{desires(deployment("new"), "n"), {
				ConfigGroupResource: template("t").ConfigGroupResource,
				DesiredConfig:       hashed(template("t"), "h"), LastAppliedConfig: hashed(template("t"), "old"),
			}},
			status: metav1.ConditionTrue,
		},
		"a new order within a resource takes effect": {
			facts: addOnFacts{
				addon: addOn("c1", has(deployment("a"), "a"), has(deployment("b"), "b")),
				cma:   newCMA(nil, placement("p", deployment("b"), deployment("a"))),
				found: configStates{deployment("a"): {hash: "a"}, deployment("b"): {hash: "b"}},
			},
			want:   references{has(deployment("b"), "b"), has(deployment("a"), "a")},
			status: metav1.ConditionTrue,
		},
		"a missing config changes nothing and is named with its author": {
			facts: addOnFacts{
				addon: addOn("c1", has(template("old"), "h")),
				cma:   newCMA(nil, placement("p", template("new"), deployment("d"))),
				found: configStates{template("new"): {missing: true}, deployment("d"): {hash: "d"}},
			},
			want:   references{has(template("old"), "h")},
			status: metav1.ConditionFalse,
			says:   []string{`addontemplates "new" does not exist`, "placement ns/p of ClusterManagementAddOn hello"},
		},
		"a config that went after it was applied keeps its hash": {
			facts: addOnFacts{
				addon: addOn("c1", has(template("t"), "h")), cma: defaults(template("t")), placement: -1,
				found: configStates{template("t"): {missing: true}},
			},
			want:   references{has(template("t"), "h")},
			status: metav1.ConditionFalse,
			says:   []string{`addontemplates "t" does not exist`, "defaults of ClusterManagementAddOn hello"},
		},
		"a kind that we do not read waits for the add-on's manager, with its reference in place": {
			facts: addOnFacts{
				addon: addOn("c1"), cma: defaults(configMap("c")), placement: -1,
				found: configStates{configMap("c"): {foreign: true}},
			},
			want:   references{desires(configMap("c"), "")},
			status: metav1.ConditionFalse, says: []string{`spec hash of configmaps "ns/c" is not known yet`},
		},
		"a hash that the add-on's manager reported counts, and so does its generation": {
			facts: func() addOnFacts {
				addon := addOn("c1", observed(desires(configMap("c"), "reported"), 5))
				addon.Spec.Configs = []addonv1beta1.AddOnConfig{configMap("c")}
				return addOnFacts{
					addon: addon, cma: defaults(), placement: -1, found: configStates{configMap("c"): {foreign: true}},
				}
			}(),
			want:   references{observed(desires(configMap("c"), "reported"), 5)},
			status: metav1.ConditionTrue,
		},
		"a kind that the add-on does not support holds nothing up": {
			facts: addOnFacts{
				addon: registered(addOn("c1")), cma: defaults(configMap("c"), template("t")), placement: -1,
				found: configStates{configMap("c"): {foreign: true}, template("t"): {hash: "h"}},
			},
			want:   references{desires(configMap("c"), ""), desires(template("t"), "h")},
			status: metav1.ConditionTrue, says: []string{"1 of 2", "does not support", "configmaps"},
		},
		"an unsupported strategy keeps the configuration": {
			facts: addOnFacts{
				addon: with(addOn("c1", has(template("t"), "old")), configured),
				cma:   newCMA(nil, byStrategy(progressive, placement("p", template("t")))),
				found: configStates{template("t"): {hash: "new"}},
			},
			want:   references{has(template("t"), "old")},
			status: metav1.ConditionFalse, says: []string{"rollout strategy Progressive is not supported yet"},
		},
		"an unsupported strategy configures no new add-on": {
			facts: addOnFacts{
				addon: addOn("c1"),
				cma:   newCMA(nil, byStrategy(progressive, placement("p", template("t")))),
				found: configStates{template("t"): {hash: "new"}},
			},
			status: metav1.ConditionFalse, says: []string{"rollout strategy Progressive is not supported yet"},
		},
		"an unsupported strategy with nothing to roll out is no trouble": {
			facts: addOnFacts{
				addon: addOn("c1", has(template("t"), "h")),
				cma:   newCMA(nil, byStrategy(progressive, placement("p", template("t")))),
				found: configStates{template("t"): {hash: "h"}},
			},
			want:   references{has(template("t"), "h")},
			status: metav1.ConditionTrue,
		},
		"an add-on whose placement is lost stays as it is": {
			facts: addOnFacts{
				addon:     with(addOn("c1", has(template("p"), "h")), configured),
				cma:       newCMA([]addonv1beta1.AddOnConfig{template("d")}, placement("p", template("p"))),
				placement: -1, missingPlacements: []string{"placement ns/p"},
				found: configStates{template("d"): {hash: "d"}},
			},
			want:   references{has(template("p"), "h")},
			status: metav1.ConditionTrue, says: []string{"placement ns/p", "does not exist", "kept as it is"},
		},
		"a new add-on whose placement is lost is not configured": {
			facts: addOnFacts{
				addon:     addOn("c1"),
				cma:       newCMA([]addonv1beta1.AddOnConfig{template("d")}, placement("p")),
				placement: -1, missingPlacements: []string{"placement ns/p"},
				found: configStates{template("d"): {hash: "d"}},
			},
			status: metav1.ConditionFalse, says: []string{"placement ns/p"},
		},
		"a deleting add-on gets a new content of its configs": {
			facts: addOnFacts{
				addon: deleting(addOn("c1", has(template("t"), "old"))),
				cma:   defaults(template("t")), placement: -1,
				found: configStates{template("t"): {hash: "new"}},
			},
			want: references{{
				ConfigGroupResource: template("t").ConfigGroupResource,
				DesiredConfig:       hashed(template("t"), "new"), LastAppliedConfig: hashed(template("t"), "old"),
			}},
			status: metav1.ConditionTrue,
		},
		"a deleting add-on does not lose its configuration to the placement that let it go": {
			facts: addOnFacts{
				addon: deleting(with(addOn("c1", has(template("p"), "h")), configured)),
				cma:   newCMA(nil, placement("p", template("p"))), placement: -1,
			},
			want: references{has(template("p"), "h")},
		},
		"an add-on that is installed by placements and selected by none stays as it is": {
			facts: addOnFacts{
				addon: func() *addonv1beta1.ManagedClusterAddOn {
					addon := with(addOn("c1", has(template("p"), "h")), configured)
					addon.Labels = map[string]string{names.LabelInstalledBy: names.InstalledByPlacement}
					return addon
				}(),
				cma:       newCMA([]addonv1beta1.AddOnConfig{template("d")}, placement("p", template("p"))),
				placement: -1,
				found:     configStates{template("d"): {hash: "d"}},
			},
			want:   references{has(template("p"), "h")},
			status: metav1.ConditionTrue, says: []string{"no placement", "about to be uninstalled"},
		},
		"an add-on that was created by hand and is selected by no placement gets the defaults": {
			facts: addOnFacts{
				addon:     addOn("c1"),
				cma:       newCMA([]addonv1beta1.AddOnConfig{template("d")}, placement("p", template("p"))),
				placement: -1,
				found:     configStates{template("d"): {hash: "d"}},
			},
			want:   references{desires(template("d"), "d")},
			status: metav1.ConditionTrue,
		},
		"an add-on whose strategy became manual gets the defaults": {
			facts: addOnFacts{
				addon: func() *addonv1beta1.ManagedClusterAddOn {
					addon := addOn("c1", has(template("p"), "h"))
					addon.Labels = map[string]string{names.LabelInstalledBy: names.InstalledByPlacement}
					return addon
				}(),
				cma: newCMA([]addonv1beta1.AddOnConfig{template("d")}), placement: -1,
				found: configStates{template("d"): {hash: "d"}},
			},
			want:   references{desires(template("d"), "d")},
			status: metav1.ConditionTrue,
		},
		"a deleting add-on does not lose its configuration to a config that went first": {
			facts: addOnFacts{
				addon: deleting(with(addOn("c1", has(template("t"), "h")), configured)),
				cma:   defaults(template("t")), placement: -1,
				found: configStates{template("t"): {missing: true}},
			},
			want: references{has(template("t"), "h")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := test.facts.addon.DeepCopy()
			got := configure(test.facts)
			assert.Equal(t, test.want, got.references)
			if test.status == "" {
				assert.Nil(t, got.configured)
			} else {
				require.NotNil(t, got.configured)
				assert.Equal(t, "Configured", got.configured.Type)
				assert.Equal(t, test.status, got.configured.Status)
				reason := map[metav1.ConditionStatus]string{
					metav1.ConditionTrue: "ConfigurationsConfigured", metav1.ConditionFalse: "ConfigurationsNotConfigured",
				}
				assert.Equal(t, reason[test.status], got.configured.Reason)
				for _, part := range test.says {
					assert.Contains(t, got.configured.Message, part)
				}
			}
			assert.Equal(t, before, test.facts.addon, "the facts are not changed")
		})
	}
}

// Shows: hub/progress
func TestProgress(t *testing.T) {
	applied := isTrue("ManifestApplied")
	references := []addonv1beta1.ConfigReference{desires(template("t"), "h")}
	other := []addonv1beta1.ConfigReference{desires(template("t"), "other")}
	unhashed := []addonv1beta1.ConfigReference{desires(template("t"), "")}
	hosted := func(addon *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
		addon.Annotations = map[string]string{names.AnnotationHostingCluster: "host"}
		return addon
	}
	ofTemplates := func(addon *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
		addon.Status.SupportedConfigs = []addonv1beta1.ConfigGroupResource{template("").ConfigGroupResource}
		return addon
	}
	asking := func(config addonv1beta1.AddOnConfig, supports ...addonv1beta1.ConfigGroupResource) addOnFacts {
		addon := with(addOn("c1"), applied)
		addon.Spec.Configs = []addonv1beta1.AddOnConfig{config}
		addon.Status.SupportedConfigs = supports
		return addOnFacts{addon: addon}
	}
	works := func(works ...*workv1.ManifestWork) addOnFacts {
		return addOnFacts{addon: with(addOn("c1"), applied), works: works}
	}
	unreadable := work("w", 3, references)
	unreadable.Annotations[names.AnnotationConfigSpecHash] = "{"
	unavailable := work("w", 3, references)
	unavailable.Status.Conditions[1].Status = metav1.ConditionFalse
	unapplied := work("w", 3, references)
	unapplied.Status.Conditions = unapplied.Status.Conditions[1:]

	tests := map[string]struct {
		facts      addOnFacts
		references []addonv1beta1.ConfigReference
		status     metav1.ConditionStatus
		reason     string
		message    string
	}{
		"a config of a kind that the add-on does not support": {
			facts:  asking(configMap("c"), template("").ConfigGroupResource),
			status: metav1.ConditionFalse, reason: "ConfigurationUnsupported",
			message: "spec.configs asks for /configmaps, which this add-on does not support",
		},
		"before the add-on said what it supports, nothing is unsupported": {
			facts: asking(configMap("c")), references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... no addon works",
		},
		"nothing was deployed yet": {
			facts:  addOnFacts{addon: addOn("c1")},
			status: metav1.ConditionFalse, reason: "WaitingForManifestApplied",
			message: "waiting for the manifests of the add-on to be applied",
		},
		"nothing was deployed on the hosting cluster yet": {
			facts:  addOnFacts{addon: hosted(with(addOn("c1"), applied))},
			status: metav1.ConditionFalse, reason: "WaitingForHostingManifestApplied",
			message: "waiting for the manifests of the add-on to be applied on the hosting cluster",
		},
		"an add-on of templates does not wait for a hosting cluster, and says so": {
			facts: addOnFacts{
				addon: ofTemplates(hosted(with(addOn("c1"), applied))),
				works: []*workv1.ManifestWork{work("a", 3, references)},
			},
			references: references, status: metav1.ConditionFalse, reason: "Completed",
			message: "completed with no errors. The agent runs on cluster c1 itself: annotation " +
				"addon.open-cluster-management.io/hosting-cluster-name=host is ignored, because hosted mode is not supported " +
				"for add-ons that are made of AddOnTemplates; remove the annotation, from the ManagedCluster if it is there, too.",
		},
		"the works cannot be read": {
			facts:  addOnFacts{addon: with(addOn("c1"), applied), worksErr: errors.New("boom")},
			status: metav1.ConditionFalse, reason: "Failed", message: "boom",
		},
		"no works": {
			facts: works(), references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... no addon works",
		},
		"one work of another content": {
			facts: works(work("a", 3, references), work("b", 3, other)), references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... mca and work configs mismatch",
		},
		"a work without the annotation does not match configs": {
			facts: works(work("a", 3, nil)), references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... mca and work configs mismatch",
		},
		"an annotation that cannot be read matches nothing": {
			facts: works(unreadable), references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... mca and work configs mismatch",
		},
		"an empty hash matches nothing, not even itself": {
			facts: works(work("a", 3, unhashed)), references: unhashed,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... mca and work configs mismatch",
		},
		"a work whose last generation was not looked at": {
			facts: works(work("a", 2, references)), references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... work is not ready",
		},
		"a work that is not available": {
			facts: works(unavailable), references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... work is not ready",
		},
		"a work that is not applied": {
			facts: works(unapplied), references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... work is not ready",
		},
		"all is in place": {
			facts: works(work("a", 3, references), work("b", 3, references)), references: references,
			status: metav1.ConditionFalse, reason: "Completed", message: "completed with no errors.",
		},
		"all is in place without any config": {
			facts:  works(work("a", 3, nil)),
			status: metav1.ConditionFalse, reason: "Completed", message: "completed with no errors.",
		},
		"all is in place on the hosting cluster": {
			facts: addOnFacts{
				addon: hosted(with(addOn("c1"), applied, isTrue("HostingManifestApplied"))),
				works: []*workv1.ManifestWork{work("a", 3, references)},
			},
			references: references,
			status:     metav1.ConditionFalse, reason: "Completed", message: "completed with no errors.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, metav1.Condition{
				Type: "Progressing", Status: test.status, Reason: test.reason, Message: test.message,
			}, progress(test.facts, test.references))
		})
	}
}

func TestConcludeAddOn(t *testing.T) {
	references := []addonv1beta1.ConfigReference{desires(template("t"), "new")}
	facts := addOnFacts{
		now:   noon,
		addon: with(addOn("c1", has(template("t"), "old")), isTrue("ManifestApplied"), isTrue("Available")),
		cma:   newCMA([]addonv1beta1.AddOnConfig{template("t")}), placement: -1,
		found: configStates{template("t"): {hash: "new", generation: 2}},
		works: []*workv1.ManifestWork{work("w", 3, []addonv1beta1.ConfigReference{desires(template("t"), "old")})},
	}
	before := facts.addon.DeepCopy()

	inFlight := concludeAddOn(facts)
	assert.Equal(t, hashed(template("t"), "old"), inFlight.Status.ConfigReferences[0].LastAppliedConfig)
	assert.True(t, meta.IsStatusConditionTrue(inFlight.Status.Conditions, "Progressing"))
	assert.True(t, meta.IsStatusConditionTrue(inFlight.Status.Conditions, "Available"), "others' conditions stay")
	assert.Equal(t, before, facts.addon, "the facts are not changed")

	facts.addon, facts.works = inFlight, []*workv1.ManifestWork{work("w", 3, references)}
	done := concludeAddOn(facts)
	assert.Equal(t, observed(has(template("t"), "new"), 2), done.Status.ConfigReferences[0])
	assert.True(t, meta.IsStatusConditionFalse(done.Status.Conditions, "Progressing"))

	facts.addon = done
	assert.Equal(t, done, concludeAddOn(facts), "a second pass changes nothing")

	facts.works = []*workv1.ManifestWork{work("w", 2, references)}
	fallen := concludeAddOn(facts)
	assert.True(t, meta.IsStatusConditionTrue(fallen.Status.Conditions, "Progressing"))
	assert.Equal(t, hashed(template("t"), "new"), fallen.Status.ConfigReferences[0].LastAppliedConfig,
		"what was applied stays applied")

	facts.found = configStates{template("t"): {missing: true}}
	facts.works = []*workv1.ManifestWork{work("w", 3, references)}
	facts.addon = fallen
	copied := fallen.DeepCopy()
	blocked := concludeAddOn(facts)
	assert.Equal(t, copied, fallen, "a kept configuration is not shared with the facts")
	assert.True(t, meta.IsStatusConditionFalse(blocked.Status.Conditions, "Configured"))
	assert.Equal(t, "Completed", progressing(blocked).Reason, "the works do have what is recorded")
}
