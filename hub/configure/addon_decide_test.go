package configure

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

func missingPlacement() []fleet.Doubt {
	return []fleet.Doubt{{Why: errors.New("placement ns/p does not exist"), Missing: true}}
}

// Shows: hub/configured-words
func TestConfigure(t *testing.T) {
	held := addonconfig.Admission{Reason: "three at a time"}
	configured := fixture.IsTrue("Configured")
	defaults := func(configs ...addonv1beta1.AddOnConfig) *addonv1beta1.ClusterManagementAddOn {
		return fixture.NewCMA(configs)
	}
	registered := func(addon *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
		return fixture.With(addon, fixture.IsTrue("RegistrationApplied"))
	}
	deleting := func(addon *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
		addon.DeletionTimestamp = new(metav1.NewTime(fixture.Noon()))
		return addon
	}
	type references = []addonv1beta1.ConfigReference
	tests := map[string]struct {
		facts  facts
		want   references
		status metav1.ConditionStatus // "" when the condition is left alone
		says   []string
		// exactly is the whole message where we have nothing to add to the words of OCM.
		exactly string
		// unplanned tests keep their admission.
		unplanned bool
	}{
		"no configs are a configuration too": {
			facts:  facts{addOn: fixture.AddOn("c1"), cma: defaults(), placement: -1},
			status: metav1.ConditionTrue, exactly: "Configurations configured",
		},
		"a config gets its hash and generation": {
			facts: facts{
				addOn: fixture.AddOn("c1"), cma: defaults(fixture.Template("t")), placement: -1,
				states: addonconfig.States{fixture.Template("t"): {Hash: "h", Generation: 4}},
			},
			want:   references{fixture.Observed(fixture.Desires(fixture.Template("t"), "h"), 4)},
			status: metav1.ConditionTrue, exactly: "Configurations configured",
		},
		"what was applied is kept for a config that stays, not for another one": {
			facts: facts{
				addOn: fixture.AddOn("c1", fixture.Has(fixture.Template("t"), "old"), fixture.Has(fixture.DeploymentConfig("gone"), "x")),
				cma:   defaults(fixture.Template("t"), fixture.DeploymentConfig("new")), placement: -1,
				states: addonconfig.States{fixture.Template("t"): {Hash: "h"}, fixture.DeploymentConfig("new"): {Hash: "n"}},
			},
			want: references{fixture.Desires(fixture.DeploymentConfig("new"), "n"), {
				ConfigGroupResource: fixture.Template("t").ConfigGroupResource,
				DesiredConfig:       fixture.Hashed(fixture.Template("t"), "h"), LastAppliedConfig: fixture.Hashed(fixture.Template("t"), "old"),
			}},
			status: metav1.ConditionTrue,
		},
		"a new order within a resource takes effect": {
			facts: facts{
				addOn:  fixture.AddOn("c1", fixture.Has(fixture.DeploymentConfig("a"), "a"), fixture.Has(fixture.DeploymentConfig("b"), "b")),
				cma:    fixture.NewCMA(nil, fixture.Placement("p", fixture.DeploymentConfig("b"), fixture.DeploymentConfig("a"))),
				states: addonconfig.States{fixture.DeploymentConfig("a"): {Hash: "a"}, fixture.DeploymentConfig("b"): {Hash: "b"}},
			},
			want:   references{fixture.Has(fixture.DeploymentConfig("b"), "b"), fixture.Has(fixture.DeploymentConfig("a"), "a")},
			status: metav1.ConditionTrue,
		},
		"a missing config changes nothing and is named with its author": {
			facts: facts{
				addOn:  fixture.AddOn("c1", fixture.Has(fixture.Template("old"), "h")),
				cma:    fixture.NewCMA(nil, fixture.Placement("p", fixture.Template("new"), fixture.DeploymentConfig("d"))),
				states: addonconfig.States{fixture.Template("new"): {Missing: true}, fixture.DeploymentConfig("d"): {Hash: "d"}},
			},
			want:   references{fixture.Has(fixture.Template("old"), "h")},
			status: metav1.ConditionFalse,
			says:   []string{`addontemplates "new" does not exist`, "placement ns/p of ClusterManagementAddOn hello"},
		},
		"a config that went after it was applied keeps its hash": {
			facts: facts{
				addOn: fixture.AddOn("c1", fixture.Has(fixture.Template("t"), "h")), cma: defaults(fixture.Template("t")), placement: -1,
				states: addonconfig.States{fixture.Template("t"): {Missing: true}},
			},
			want:   references{fixture.Has(fixture.Template("t"), "h")},
			status: metav1.ConditionFalse,
			says:   []string{`addontemplates "t" does not exist`, "defaults of ClusterManagementAddOn hello"},
		},
		"a kind that we do not read waits for the add-on's manager, with its reference in place": {
			facts: facts{
				addOn: fixture.AddOn("c1"), cma: defaults(fixture.ConfigMap("c")), placement: -1,
				states: addonconfig.States{fixture.ConfigMap("c"): {Unread: "its manager reports it"}},
			},
			want:   references{fixture.Desires(fixture.ConfigMap("c"), "")},
			status: metav1.ConditionFalse, says: []string{`spec hash of configmaps "ns/c"`, "is not known yet"},
		},
		"a hash that the add-on's manager reported counts, and so does its generation": {
			facts: func() facts {
				addon := fixture.AddOn("c1", fixture.Observed(fixture.Desires(fixture.ConfigMap("c"), "reported"), 5))
				addon.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.ConfigMap("c")}
				return facts{
					addOn: addon, cma: defaults(), placement: -1, states: addonconfig.States{fixture.ConfigMap("c"): {Unread: "its manager reports it"}},
				}
			}(),
			want:   references{fixture.Observed(fixture.Desires(fixture.ConfigMap("c"), "reported"), 5)},
			status: metav1.ConditionTrue,
		},
		"a kind that the add-on does not support holds nothing up": {
			facts: facts{
				addOn: registered(fixture.AddOn("c1")), cma: defaults(fixture.ConfigMap("c"), fixture.Template("t")), placement: -1,
				states: addonconfig.States{fixture.ConfigMap("c"): {Unread: "its manager reports it"}, fixture.Template("t"): {Hash: "h"}},
			},
			want:   references{fixture.Desires(fixture.ConfigMap("c"), ""), fixture.Desires(fixture.Template("t"), "h")},
			status: metav1.ConditionTrue, says: []string{"1 of 2", "does not support", "configmaps"},
		},
		"an add-on that the rollout holds keeps the configuration and names the cause": {
			facts: facts{
				addOn: fixture.With(fixture.AddOn("c1", fixture.Has(fixture.Template("t"), "old")), configured),
				cma:   fixture.NewCMA(nil, fixture.Placement("p", fixture.Template("t"))), admission: held,
				states: addonconfig.States{fixture.Template("t"): {Hash: "new"}},
			},
			want:   references{fixture.Has(fixture.Template("t"), "old")},
			status: metav1.ConditionFalse, says: []string{"three at a time"},
		},
		"a new add-on that the rollout holds is not configured": {
			facts: facts{
				addOn: fixture.AddOn("c1"), admission: held,
				cma:    fixture.NewCMA(nil, fixture.Placement("p", fixture.Template("t"))),
				states: addonconfig.States{fixture.Template("t"): {Hash: "new"}},
			},
			status: metav1.ConditionFalse, says: []string{"three at a time"},
		},
		"an add-on that the rollout has not planned yet says nothing": {
			facts: facts{
				addOn: fixture.AddOn("c1", fixture.Has(fixture.Template("t"), "old")), admission: addonconfig.Admission{},
				cma:    fixture.NewCMA(nil, fixture.Placement("p", fixture.Template("t"))),
				states: addonconfig.States{fixture.Template("t"): {Hash: "new"}},
			},
			want: references{fixture.Has(fixture.Template("t"), "old")}, unplanned: true,
		},
		"an add-on that has its target needs no admission": {
			facts: facts{
				addOn: fixture.AddOn("c1", fixture.Has(fixture.Template("t"), "h")), admission: held,
				cma:    fixture.NewCMA(nil, fixture.Placement("p", fixture.Template("t"))),
				states: addonconfig.States{fixture.Template("t"): {Hash: "h"}},
			},
			want:   references{fixture.Has(fixture.Template("t"), "h")},
			status: metav1.ConditionTrue,
		},
		"a config of the add-on itself needs no admission": {
			facts: facts{
				addOn: func() *addonv1beta1.ManagedClusterAddOn {
					addOn := fixture.AddOn("c1", fixture.Has(fixture.DeploymentConfig("d"), "old"),
						fixture.Has(fixture.Template("t"), "h"))
					addOn.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("mine")}
					return addOn
				}(),
				cma:       fixture.NewCMA(nil, fixture.Placement("p", fixture.Template("t"), fixture.DeploymentConfig("d"))),
				admission: held,
				states: addonconfig.States{
					fixture.Template("t"): {Hash: "h"}, fixture.DeploymentConfig("mine"): {Hash: "m"},
				},
			},
			want:   references{fixture.Desires(fixture.DeploymentConfig("mine"), "m"), fixture.Has(fixture.Template("t"), "h")},
			status: metav1.ConditionTrue,
		},
		"a content that cannot be stored does not become desired": {
			facts: facts{
				addOn: fixture.AddOn("c1", fixture.Has(fixture.Template("t"), "old")), admission: addonconfig.Admission{Granted: true},
				cma:    fixture.NewCMA(nil, fixture.Placement("p", fixture.Template("t"))),
				states: addonconfig.States{fixture.Template("t"): {Hash: "new"}}, storeErr: errors.New("forbidden"),
			},
			want:   references{fixture.Has(fixture.Template("t"), "old")},
			status: metav1.ConditionFalse, says: []string{"cannot be stored", "forbidden"},
		},
		"an add-on whose placement is lost stays as it is": {
			facts: facts{
				addOn:     fixture.With(fixture.AddOn("c1", fixture.Has(fixture.Template("p"), "h")), configured),
				cma:       fixture.NewCMA([]addonv1beta1.AddOnConfig{fixture.Template("d")}, fixture.Placement("p", fixture.Template("p"))),
				placement: -1, doubts: missingPlacement(),
				states: addonconfig.States{fixture.Template("d"): {Hash: "d"}},
			},
			want:   references{fixture.Has(fixture.Template("p"), "h")},
			status: metav1.ConditionTrue, says: []string{"placement ns/p", "does not exist", "kept as it is"},
		},
		"a new add-on whose placement is lost is not configured": {
			facts: facts{
				addOn:     fixture.AddOn("c1"),
				cma:       fixture.NewCMA([]addonv1beta1.AddOnConfig{fixture.Template("d")}, fixture.Placement("p")),
				placement: -1, doubts: missingPlacement(),
				states: addonconfig.States{fixture.Template("d"): {Hash: "d"}},
			},
			status: metav1.ConditionFalse, says: []string{"placement ns/p"},
		},
		"a deleting add-on gets a new content of its configs": {
			facts: facts{
				addOn: deleting(fixture.AddOn("c1", fixture.Has(fixture.Template("t"), "old"))),
				cma:   defaults(fixture.Template("t")), placement: -1,
				states: addonconfig.States{fixture.Template("t"): {Hash: "new"}},
			},
			want: references{{
				ConfigGroupResource: fixture.Template("t").ConfigGroupResource,
				DesiredConfig:       fixture.Hashed(fixture.Template("t"), "new"), LastAppliedConfig: fixture.Hashed(fixture.Template("t"), "old"),
			}},
			status: metav1.ConditionTrue,
		},
		"a deleting add-on does not lose its configuration to the placement that let it go": {
			facts: facts{
				addOn: deleting(fixture.With(fixture.AddOn("c1", fixture.Has(fixture.Template("p"), "h")), configured)),
				cma:   fixture.NewCMA(nil, fixture.Placement("p", fixture.Template("p"))), placement: -1,
			},
			want: references{fixture.Has(fixture.Template("p"), "h")},
		},
		"an add-on that is installed by placements and selected by none stays as it is": {
			facts: facts{
				addOn: func() *addonv1beta1.ManagedClusterAddOn {
					addon := fixture.With(fixture.AddOn("c1", fixture.Has(fixture.Template("p"), "h")), configured)
					addon.Labels = map[string]string{names.LabelInstalledBy: names.InstalledByPlacement}
					return addon
				}(),
				cma:       fixture.NewCMA([]addonv1beta1.AddOnConfig{fixture.Template("d")}, fixture.Placement("p", fixture.Template("p"))),
				placement: -1,
				states:    addonconfig.States{fixture.Template("d"): {Hash: "d"}},
			},
			want:   references{fixture.Has(fixture.Template("p"), "h")},
			status: metav1.ConditionTrue, says: []string{"no placement", "about to be uninstalled"},
		},
		"an add-on that was created by hand and is selected by no placement gets the defaults": {
			facts: facts{
				addOn:     fixture.AddOn("c1"),
				cma:       fixture.NewCMA([]addonv1beta1.AddOnConfig{fixture.Template("d")}, fixture.Placement("p", fixture.Template("p"))),
				placement: -1,
				states:    addonconfig.States{fixture.Template("d"): {Hash: "d"}},
			},
			want:   references{fixture.Desires(fixture.Template("d"), "d")},
			status: metav1.ConditionTrue,
		},
		"an add-on whose strategy became manual gets the defaults": {
			facts: facts{
				addOn: func() *addonv1beta1.ManagedClusterAddOn {
					addon := fixture.AddOn("c1", fixture.Has(fixture.Template("p"), "h"))
					addon.Labels = map[string]string{names.LabelInstalledBy: names.InstalledByPlacement}
					return addon
				}(),
				cma: fixture.NewCMA([]addonv1beta1.AddOnConfig{fixture.Template("d")}), placement: -1,
				states: addonconfig.States{fixture.Template("d"): {Hash: "d"}},
			},
			want:   references{fixture.Desires(fixture.Template("d"), "d")},
			status: metav1.ConditionTrue,
		},
		"a deleting add-on does not lose its configuration to a config that went first": {
			facts: facts{
				addOn: deleting(fixture.With(fixture.AddOn("c1", fixture.Has(fixture.Template("t"), "h")), configured)),
				cma:   defaults(fixture.Template("t")), placement: -1,
				states: addonconfig.States{fixture.Template("t"): {Missing: true}},
			},
			want: references{fixture.Has(fixture.Template("t"), "h")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := test.facts.addOn.DeepCopy()
			if test.facts.admission == (addonconfig.Admission{}) && !test.unplanned {
				test.facts.admission.Granted = true
			}
			got := decide(test.facts)
			assert.Equal(t, test.unplanned, got.undecided)
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
				begins := map[metav1.ConditionStatus]string{
					metav1.ConditionTrue:  "Configurations configured",
					metav1.ConditionFalse: "Configurations updated and not configured yet: ",
				}
				assert.True(t, strings.HasPrefix(got.configured.Message, begins[test.status]), got.configured.Message)
				if test.exactly != "" {
					assert.Equal(t, test.exactly, got.configured.Message)
				}
				for _, part := range test.says {
					assert.Contains(t, got.configured.Message, part)
				}
			}
			assert.Equal(t, before, test.facts.addOn, "the facts are not changed")
		})
	}
}

// Shows: hub/progress
func TestProgress(t *testing.T) {
	type inputs struct {
		addOn    *addonv1beta1.ManagedClusterAddOn
		works    []*workv1.ManifestWork
		worksErr error
	}
	applied := fixture.IsTrue("ManifestApplied")
	references := []addonv1beta1.ConfigReference{fixture.Desires(fixture.Template("t"), "h")}
	other := []addonv1beta1.ConfigReference{fixture.Desires(fixture.Template("t"), "other")}
	unhashed := []addonv1beta1.ConfigReference{fixture.Desires(fixture.Template("t"), "")}
	hosted := func(addon *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
		addon.Annotations = map[string]string{names.AnnotationHostingCluster: "host"}
		return addon
	}
	asking := func(config addonv1beta1.AddOnConfig, supports ...addonv1beta1.ConfigGroupResource) inputs {
		addon := fixture.With(fixture.AddOn("c1"), applied)
		addon.Spec.Configs = []addonv1beta1.AddOnConfig{config}
		addon.Status.SupportedConfigs = supports
		return inputs{addOn: addon}
	}
	works := func(works ...*workv1.ManifestWork) inputs {
		return inputs{addOn: fixture.With(fixture.AddOn("c1"), applied), works: works}
	}
	unreadable := fixture.Work("w", 3, references)
	unreadable.Annotations[names.AnnotationConfigSpecHash] = "{"
	unavailable := fixture.Work("w", 3, references)
	unavailable.Status.Conditions[1].Status = metav1.ConditionFalse
	unapplied := fixture.Work("w", 3, references)
	unapplied.Status.Conditions = unapplied.Status.Conditions[1:]

	tests := map[string]struct {
		facts      inputs
		nothing    bool
		references []addonv1beta1.ConfigReference
		status     metav1.ConditionStatus
		reason     string
		message    string
	}{
		"a config of a kind that the add-on does not support": {
			facts:  asking(fixture.ConfigMap("c"), fixture.Template("").ConfigGroupResource),
			status: metav1.ConditionFalse, reason: "ConfigurationUnsupported",
			message: "spec.configs asks for /configmaps, which this add-on does not support",
		},
		"before the add-on said what it supports, nothing is unsupported": {
			facts: asking(fixture.ConfigMap("c")), references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... no addon works",
		},
		"nothing was deployed yet": {
			facts:  inputs{addOn: fixture.AddOn("c1")},
			status: metav1.ConditionFalse, reason: "WaitingForManifestApplied",
			message: "waiting for the manifests of the add-on to be applied",
		},
		"nothing was deployed on the hosting cluster yet": {
			facts:  inputs{addOn: hosted(fixture.With(fixture.AddOn("c1"), applied))},
			status: metav1.ConditionFalse, reason: "WaitingForHostingManifestApplied",
			message: "waiting for the manifests of the add-on to be applied on the hosting cluster",
		},
		"the works cannot be read": {
			facts:  inputs{addOn: fixture.With(fixture.AddOn("c1"), applied), worksErr: errors.New("boom")},
			status: metav1.ConditionFalse, reason: "Failed", message: "boom",
		},
		"no works": {
			facts: works(), references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... no addon works",
		},
		"no works, because there is nothing to deploy": {
			facts: works(), nothing: true, references: references,
			status: metav1.ConditionFalse, reason: "Completed", message: "completed with no errors.",
		},
		"nothing to deploy any more, while a work is left": {
			facts: works(fixture.Work("a", 3, other)), nothing: true, references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... mca and work configs mismatch",
		},
		"one work of another content": {
			facts: works(fixture.Work("a", 3, references), fixture.Work("b", 3, other)), references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... mca and work configs mismatch",
		},
		"a work without the annotation does not match configs": {
			facts: works(fixture.Work("a", 3, nil)), references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... mca and work configs mismatch",
		},
		"an annotation that cannot be read matches nothing": {
			facts: works(unreadable), references: references,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... mca and work configs mismatch",
		},
		"an empty hash matches nothing, not even itself": {
			facts: works(fixture.Work("a", 3, unhashed)), references: unhashed,
			status: metav1.ConditionTrue, reason: "Progressing", message: "progressing... mca and work configs mismatch",
		},
		"a work whose last generation was not looked at": {
			facts: works(fixture.Work("a", 2, references)), references: references,
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
			facts: works(fixture.Work("a", 3, references), fixture.Work("b", 3, references)), references: references,
			status: metav1.ConditionFalse, reason: "Completed", message: "completed with no errors.",
		},
		"all is in place without any config": {
			facts:  works(fixture.Work("a", 3, nil)),
			status: metav1.ConditionFalse, reason: "Completed", message: "completed with no errors.",
		},
		"all is in place on the hosting cluster": {
			facts: inputs{
				addOn: hosted(fixture.With(fixture.AddOn("c1"), applied, fixture.IsTrue("HostingManifestApplied"))),
				works: []*workv1.ManifestWork{fixture.Work("a", 3, references)},
			},
			references: references,
			status:     metav1.ConditionFalse, reason: "Completed", message: "completed with no errors.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, metav1.Condition{
				Type: "Progressing", Status: test.status, Reason: test.reason, Message: test.message,
			}, progress(test.facts.addOn, test.facts.addOn.Status.Conditions,
				addon.Progress{Works: test.facts.works, Nothing: test.nothing, Err: test.facts.worksErr}, test.references))
		})
	}
}

func TestRecord(t *testing.T) {
	references := []addonv1beta1.ConfigReference{fixture.Desires(fixture.Template("t"), "new")}
	f := facts{
		addOn: fixture.With(fixture.AddOn("c1", fixture.Has(fixture.Template("t"), "old")), fixture.IsTrue("ManifestApplied"),
			fixture.IsTrue("Available")),
		cma: fixture.NewCMA([]addonv1beta1.AddOnConfig{fixture.Template("t")}), placement: -1,
		states:    addonconfig.States{fixture.Template("t"): {Hash: "new", Generation: 2}},
		admission: addonconfig.Admission{Granted: true},
	}
	works := []*workv1.ManifestWork{
		fixture.Work("w", 3, []addonv1beta1.ConfigReference{fixture.Desires(fixture.Template("t"), "old")}),
	}
	now := fixture.Noon()
	pass := func() *addonv1beta1.ManagedClusterAddOn {
		before, after := f.addOn.DeepCopy(), f.addOn.DeepCopy()
		record(f, decide(f), after, addon.Progress{Works: works, Now: now})
		assert.Equal(t, before, f.addOn, "the facts are not changed")
		return after
	}
	progressing := func(addOn *addonv1beta1.ManagedClusterAddOn) *metav1.Condition {
		return meta.FindStatusCondition(addOn.Status.Conditions, "Progressing")
	}

	inFlight := pass()
	assert.Equal(t, fixture.Hashed(fixture.Template("t"), "old"), inFlight.Status.ConfigReferences[0].LastAppliedConfig)
	assert.Equal(t, metav1.ConditionTrue, progressing(inFlight).Status)
	assert.True(t, meta.IsStatusConditionTrue(inFlight.Status.Conditions, "Available"), "others' conditions stay")

	now = now.Add(time.Minute)
	f.addOn, works = inFlight, []*workv1.ManifestWork{fixture.Work("w", 3, references)}
	done := pass()
	assert.Equal(t, fixture.Observed(fixture.Has(fixture.Template("t"), "new"), 2), done.Status.ConfigReferences[0])
	assert.Equal(t, metav1.ConditionFalse, progressing(done).Status)
	assert.Equal(t, now, progressing(done).LastTransitionTime.Time)

	f.addOn = done
	assert.Equal(t, done, pass(), "a second pass changes nothing")

	now = now.Add(settled)
	works = []*workv1.ManifestWork{fixture.Work("w", 2, references)}
	fallen := pass()
	assert.Equal(t, metav1.ConditionTrue, progressing(fallen).Status)
	assert.Equal(t, fixture.Hashed(fixture.Template("t"), "new"), fallen.Status.ConfigReferences[0].LastAppliedConfig,
		"what was applied stays applied")

	f.addOn, f.states = fallen, addonconfig.States{fixture.Template("t"): {Missing: true}}
	works = []*workv1.ManifestWork{fixture.Work("w", 3, references)}
	blocked := pass()
	assert.True(t, meta.IsStatusConditionFalse(blocked.Status.Conditions, "Configured"))
	assert.Equal(t, "Completed", progressing(blocked).Reason, "the works do have what is recorded")
}

func TestProgressBeginsAnewWithAnotherContent(t *testing.T) {
	f := facts{
		addOn: fixture.With(fixture.AddOn("c1", fixture.Desires(fixture.Template("t"), "first")),
			fixture.IsTrue("ManifestApplied"),
			fixture.Condition("Progressing", metav1.ConditionTrue, "Progressing", fixture.Noon().Add(-time.Hour))),
		cma: fixture.NewCMA([]addonv1beta1.AddOnConfig{fixture.Template("t")}), placement: -1,
		states: addonconfig.States{fixture.Template("t"): {Hash: "second"}}, admission: addonconfig.Admission{Granted: true},
	}
	after := f.addOn.DeepCopy()
	record(f, decide(f), after, addon.Progress{Now: fixture.Noon()})
	since := meta.FindStatusCondition(after.Status.Conditions, "Progressing").LastTransitionTime.Time
	assert.Equal(t, fixture.Noon(), since, "a deadline counts from the content that is in flight")
}

// Shows: hub/rolls-out-pods
func TestAContentIsCompletedWhenItsPodsAreReady(t *testing.T) {
	references := []addonv1beta1.ConfigReference{fixture.Desires(fixture.Template("t"), "new")}
	works := []*workv1.ManifestWork{fixture.Work("w", 3, references)}
	f := facts{
		addOn: fixture.With(fixture.AddOn("c1", references...), fixture.IsTrue("ManifestApplied")),
		cma:   fixture.NewCMA([]addonv1beta1.AddOnConfig{fixture.Template("t")}), placement: -1,
		states: addonconfig.States{fixture.Template("t"): {Hash: "new"}}, admission: addonconfig.Admission{Granted: true},
	}
	now := fixture.Noon()
	pass := func(rollingOut ...string) (reason string, applied bool) {
		after := f.addOn.DeepCopy()
		record(f, decide(f), after, addon.Progress{Works: works, RollingOut: rollingOut, Now: now})
		f.addOn = after
		condition := meta.FindStatusCondition(after.Status.Conditions, "Progressing")
		assert.Equal(t, len(rollingOut) > 0 && condition.Reason == "Progressing",
			strings.Contains(condition.Message, "has 1 ready of 2 pods"))
		return condition.Reason, after.Status.ConfigReferences[0].LastAppliedConfig != nil
	}
	stuck := "Deployment ns/n has 1 ready of 2 pods"
	expect := func(reason string, applied bool, rollingOut ...string) {
		t.Helper()
		gotReason, gotApplied := pass(rollingOut...)
		assert.Equal(t, reason, gotReason)
		assert.Equal(t, applied, gotApplied)
	}
	expect("Progressing", false, stuck)
	expect("Completed", true)
	now = now.Add(2 * time.Second)
	expect("Progressing", false, stuck) // It was completed before the cluster had reported its pods.
	now = now.Add(time.Hour)
	expect("Progressing", false, stuck)
	expect("Completed", true)
	now = now.Add(time.Hour)
	expect("Completed", true, stuck) // That is for its health to show.
	works[0].Status.Conditions = nil
	expect("Progressing", true)
	works = []*workv1.ManifestWork{fixture.Work("w", 3, references)}
	expect("Progressing", true, stuck) // It comes back, and its content was applied all the time.
	expect("Completed", true)
}

// soaking are the facts about an add-on whose rollout wants to see it well for ten minutes.
func soaking(references []addonv1beta1.ConfigReference) facts {
	strategy := clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{
			RolloutConfig: clusterv1alpha1.RolloutConfig{MinSuccessTime: metav1.Duration{Duration: 10 * time.Minute}},
		},
	}
	return facts{
		addOn:  fixture.With(fixture.AddOn("c1", references...), fixture.IsTrue("ManifestApplied")),
		cma:    fixture.NewCMA(nil, fixture.ByStrategy(strategy, fixture.Placement("p", fixture.Template("t")))),
		states: addonconfig.States{fixture.Template("t"): {Hash: "new"}}, admission: addonconfig.Admission{Granted: true},
	}
}

// Shows: hub/breaks-while-it-soaks
func TestAClusterThatBreaksWhileItSoaksHasFailed(t *testing.T) {
	references := []addonv1beta1.ConfigReference{fixture.Desires(fixture.Template("t"), "new")}
	type step struct {
		after   time.Duration
		broken  bool
		rolling bool
		again   func(*workv1.ManifestWork)
		err     error
		reason  string
		applied bool
		since   time.Duration
	}
	rewritten := func(work *workv1.ManifestWork) { work.Generation++ }
	recreated := func(work *workv1.ManifestWork) { work.Status.Conditions = nil }
	for sentence, steps := range map[string][]step{
		"its works are not ready a minute after it was completed": {
			{reason: "Completed", applied: true},
			{after: time.Minute, broken: true, reason: "Failed", since: time.Minute},
			{after: time.Hour, broken: true, reason: "Failed", since: time.Minute},
			{after: 2 * time.Hour, reason: "Completed", applied: true, since: 2 * time.Hour},
			{after: 3 * time.Hour, broken: true, reason: "Progressing", applied: true, since: 3 * time.Hour},
		},
		"its pods are told of a moment after it was completed": {
			{reason: "Completed", applied: true},
			{after: 9 * time.Second, broken: true, reason: "Progressing", since: 9 * time.Second},
			{after: time.Minute, broken: true, reason: "Progressing", since: 9 * time.Second},
			{after: 2 * time.Minute, reason: "Completed", applied: true, since: 2 * time.Minute},
		},
		"its works cannot be rendered any more, and then are not ready": {
			{reason: "Completed", applied: true},
			{after: time.Minute, err: errors.New("cannot be rendered"), reason: "Failed", since: time.Minute},
			{after: 2 * time.Minute, broken: true, reason: "Failed", since: time.Minute},
			{after: 3 * time.Minute, reason: "Completed", applied: true, since: 3 * time.Minute},
		},
		"it breaks when it has soaked, which is no matter of the rollout": {
			{reason: "Completed", applied: true},
			{after: 10 * time.Minute, broken: true, reason: "Progressing", applied: true, since: 10 * time.Minute},
			{after: 11 * time.Minute, broken: true, reason: "Progressing", applied: true, since: 10 * time.Minute},
		},
		"not when its work is written again": {
			{reason: "Completed", applied: true},
			{after: time.Minute, again: rewritten, reason: "Progressing", since: time.Minute},
			{after: 2 * time.Minute, reason: "Completed", applied: true, since: 2 * time.Minute},
		},
		"not when its work is created again": {
			{reason: "Completed", applied: true},
			{after: time.Minute, again: recreated, reason: "Progressing", since: time.Minute},
			{after: 2 * time.Minute, reason: "Completed", applied: true, since: 2 * time.Minute},
		},
		"although its work is written again since it broke": {
			{reason: "Completed", applied: true},
			{after: time.Minute, broken: true, reason: "Failed", since: time.Minute},
			{after: 2 * time.Minute, again: rewritten, reason: "Failed", since: time.Minute},
			{after: 3 * time.Minute, reason: "Completed", applied: true, since: 3 * time.Minute},
		},
		"not when its work is written again and asks for more pods": {
			{reason: "Completed", applied: true},
			{after: time.Minute, again: rewritten, rolling: true, reason: "Progressing", since: time.Minute},
			{after: 2 * time.Minute, rolling: true, reason: "Progressing", since: time.Minute},
			{after: 3 * time.Minute, reason: "Completed", applied: true, since: 3 * time.Minute},
			{after: 4 * time.Minute, rolling: true, reason: "Failed", since: 4 * time.Minute},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := soaking(references)
			for _, s := range steps {
				work := fixture.Work("w", 3, references)
				works := addon.Progress{Works: []*workv1.ManifestWork{work}, Err: s.err, Now: fixture.Noon().Add(s.after)}
				if s.broken {
					work.Status.Conditions[1].Status = metav1.ConditionFalse
				}
				if s.again != nil {
					s.again(work)
				}
				if s.rolling {
					works.RollingOut = []string{"Deployment ns/n has 1 ready of 2 pods"}
				}
				after := f.addOn.DeepCopy()
				record(f, decide(f), after, works)
				f.addOn = after
				condition := meta.FindStatusCondition(after.Status.Conditions, "Progressing")
				assert.Equal(t, s.reason, condition.Reason, s.after)
				assert.Equal(t, fixture.Noon().Add(s.since), condition.LastTransitionTime.Time, s.after)
				assert.Equal(t, s.applied, after.Status.ConfigReferences[0].LastAppliedConfig != nil, s.after)
			}
		})
	}
}

func TestThatAClusterBrokeWhileItSoakedIsToldUntilItIsComplete(t *testing.T) {
	references := []addonv1beta1.ConfigReference{fixture.Desires(fixture.Template("t"), "new")}
	f := soaking(references)
	pass := func(after time.Duration, rollingOut ...string) string {
		works := addon.Progress{
			Works: []*workv1.ManifestWork{fixture.Work("w", 3, references)}, RollingOut: rollingOut,
			Now: fixture.Noon().Add(after),
		}
		addOn := f.addOn.DeepCopy()
		record(f, decide(f), addOn, works)
		f.addOn = addOn
		return meta.FindStatusCondition(addOn.Status.Conditions, "Progressing").Message
	}
	const told = "it was complete and broke: progressing... Deployment ns/n has "
	assert.Equal(t, "completed with no errors.", pass(0))
	assert.Equal(t, told+"1 ready of 2 pods", pass(settled, "Deployment ns/n has 1 ready of 2 pods"))
	assert.Equal(t, told+"1 ready of 2 pods", pass(settled, "Deployment ns/n has 1 ready of 2 pods"))
	assert.Equal(t, told+"0 ready of 2 pods", pass(time.Hour, "Deployment ns/n has 0 ready of 2 pods"))
	assert.Equal(t, "completed with no errors.", pass(2*time.Hour))
}
