package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/phase
func TestPhaseOf(t *testing.T) {
	type references = []addonv1beta1.ConfigReference
	inProgress := condition("Progressing", metav1.ConditionTrue, "Progressing", noon)
	broken := condition("Progressing", metav1.ConditionFalse, "Failed", noon)
	tests := map[string]struct {
		addon *addonv1beta1.ManagedClusterAddOn
		want  references
		phase phase
	}{
		"nothing is asked for":         {addon: addOn("c"), phase: succeeded},
		"a reference is missing":       {addon: addOn("c"), want: references{desires(template("t"), "h")}, phase: toApply},
		"a reference is not asked for": {addon: addOn("c", has(template("t"), "h")), phase: toApply},
		"another content is asked for": {
			addon: addOn("c", has(template("t"), "h")), want: references{desires(template("t"), "new")}, phase: toApply,
		},
		"one in flight does not hide another to apply": {
			addon: with(addOn("c", desires(deployment("d"), "d"), has(template("t"), "h")), inProgress),
			want:  references{desires(deployment("d"), "d"), desires(template("t"), "new")}, phase: toApply,
		},
		"a reference without a desired config is to apply and does not crash": {
			addon: addOn("c", addonv1beta1.ConfigReference{ConfigGroupResource: template("t").ConfigGroupResource}),
			want:  references{desires(template("t"), "h")}, phase: toApply,
		},
		"in flight": {
			addon: with(addOn("c", desires(template("t"), "h")), inProgress),
			want:  references{desires(template("t"), "h")}, phase: inFlight,
		},
		"in flight before the condition is there": {
			addon: addOn("c", desires(template("t"), "h")), want: references{desires(template("t"), "h")}, phase: inFlight,
		},
		"failed": {
			addon: with(addOn("c", desires(template("t"), "h")), broken),
			want:  references{desires(template("t"), "h")}, phase: failed,
		},
		"applied": {
			addon: addOn("c", has(template("t"), "h")), want: references{desires(template("t"), "h")}, phase: succeeded,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.phase, phaseOf(test.addon, test.want)) })
	}
}

// Shows: hub/counts
func TestConcludePlanCounts(t *testing.T) {
	t1 := template("t")
	found := configStates{t1: {hash: "h"}, deployment("d"): {hash: "d"}, template("gone"): {missing: true}}
	done := func(c string) *addonv1beta1.ManagedClusterAddOn { return addOn(c, has(t1, "h")) }
	flying := func(c, reason string, since time.Time) *addonv1beta1.ManagedClusterAddOn {
		return with(addOn(c, desires(t1, "h")), condition("Progressing", metav1.ConditionTrue, reason, since))
	}
	deadline := clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All, All: &clusterv1alpha1.RolloutAll{
		RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "10m"},
	}}
	progressive := clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.ProgressivePerGroup}
	overriding := addOn("c2", has(deployment("d"), "d"), has(t1, "h"))
	overriding.Spec.Configs = []addonv1beta1.AddOnConfig{deployment("d")}
	tests := map[string]struct {
		placements []addonv1beta1.PlacementStrategy
		facts      []placementFacts
		addons     []*addonv1beta1.ManagedClusterAddOn
		want       []string
		recheck    time.Time
	}{
		"no cluster is selected": {
			placements: []addonv1beta1.PlacementStrategy{placement("p", t1)},
			facts:      []placementFacts{selects()},
			want: []string{"selected clusters 0. configured addons 0/0 progressing..., 0 failed 0 timeout. placement ns/p " +
				"selects no cluster: no placement controller has decided it; start the hub manager with --placement=true, or one of OCM."},
		},
		"add-ons are not created yet": {
			placements: []addonv1beta1.PlacementStrategy{placement("p", t1)},
			facts:      []placementFacts{selects("c1", "c2")},
			want:       []string{"selected clusters 2. configured addons 0/2 progressing..., 0 failed 0 timeout."},
		},
		"one of three is done, one in flight, one to apply": {
			placements: []addonv1beta1.PlacementStrategy{placement("p", t1)},
			facts:      []placementFacts{selects("c1", "c2", "c3")},
			addons: []*addonv1beta1.ManagedClusterAddOn{
				done("c1"), flying("c2", "Progressing", noon), addOn("c3"), done("by-hand"),
			},
			want: []string{"selected clusters 3. configured addons 3/3 progressing..., 0 failed 0 timeout."},
		},
		"all are done, one with a config of its own": {
			placements: []addonv1beta1.PlacementStrategy{placement("p", t1)},
			facts:      []placementFacts{selects("c1", "c2")},
			addons:     []*addonv1beta1.ManagedClusterAddOn{done("c1"), overriding},
			want: []string{
				"selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout.",
			},
		},
		"the last placement owns a cluster that several select": {
			placements: []addonv1beta1.PlacementStrategy{placement("p"), placement("q", t1)},
			facts:      []placementFacts{selects("c1", "c2"), selects("c2", "c3")},
			addons:     []*addonv1beta1.ManagedClusterAddOn{addOn("c1"), done("c2"), addOn("c3")},
			want: []string{
				"selected clusters 2. configured addons 1/1 completed with no errors, 0 failed 0 timeout.",
				"selected clusters 2. configured addons 2/2 progressing..., 0 failed 0 timeout.",
			},
		},
		"those beyond the deadline are timed out, the next one is awaited": {
			placements: []addonv1beta1.PlacementStrategy{byStrategy(deadline, placement("p", t1))},
			facts:      []placementFacts{selects("c1", "c2", "c3", "c4")},
			addons: []*addonv1beta1.ManagedClusterAddOn{
				flying("c1", "Progressing", noon.Add(-time.Minute)),
				flying("c2", "Progressing", noon.Add(-2*time.Minute)),
				flying("c3", "Progressing", noon.Add(-10*time.Minute)),
				flying("c4", "Failed", noon.Add(-time.Hour)),
			},
			want:    []string{"selected clusters 4. configured addons 2/4 progressing..., 1 failed 2 timeout."},
			recheck: noon.Add(8 * time.Minute),
		},
		"a strategy that we do not support says so and counts nothing as on its way": {
			placements: []addonv1beta1.PlacementStrategy{byStrategy(progressive, placement("p", t1))},
			facts:      []placementFacts{selects("c1", "c2")},
			addons:     []*addonv1beta1.ManagedClusterAddOn{addOn("c1"), flying("c2", "Progressing", noon)},
			want: []string{"selected clusters 2. configured addons 1/2 progressing..., 0 failed 0 timeout. " +
				"rollout strategy ProgressivePerGroup is not supported yet, so add-ons keep the configuration that they have."},
		},
		"a missing config is named and its add-ons are not on their way": {
			placements: []addonv1beta1.PlacementStrategy{placement("p", template("gone"))},
			facts:      []placementFacts{selects("c1")},
			addons:     []*addonv1beta1.ManagedClusterAddOn{done("c1")},
			want: []string{"selected clusters 1. configured addons 0/1 progressing..., 0 failed 0 timeout. " +
				`addontemplates "gone" does not exist.`},
		},
		"a missing placement is named and stops no other": {
			placements: []addonv1beta1.PlacementStrategy{placement("gone", t1), placement("p", t1)},
			facts:      []placementFacts{{}, selects("c1")},
			addons:     []*addonv1beta1.ManagedClusterAddOn{done("c1")},
			want: []string{
				"selected clusters 0. configured addons 0/0 progressing..., 0 failed 0 timeout. " +
					"placement ns/gone does not exist: create it, or correct spec.installStrategy.placements.",
				"selected clusters 1. configured addons 1/1 completed with no errors, 0 failed 0 timeout.",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			facts := planFacts{
				now: noon, cma: newCMA(nil, test.placements...),
				placements: test.facts, addons: test.addons, found: found,
			}
			before := facts.cma.DeepCopy()
			after, recheck := concludePlan(facts)
			assert.Equal(t, before, facts.cma, "the facts are not changed")
			assert.Equal(t, test.recheck, recheck)
			require.Len(t, after.Status.InstallProgressions, len(test.want))
			for i, progression := range after.Status.InstallProgressions {
				assert.Equal(t, test.placements[i].PlacementRef, progression.PlacementRef)
				got := meta.FindStatusCondition(progression.Conditions, "Progressing")
				require.NotNil(t, got)
				assert.Equal(t, test.want[i], got.Message)
				if counted := facts.count(i, facts.owners()); counted.complete() {
					assert.Equal(t, metav1.ConditionFalse, got.Status)
					assert.Equal(t, "Completed", got.Reason)
				} else {
					assert.Equal(t, metav1.ConditionTrue, got.Status)
					assert.Equal(t, "Progressing", got.Reason)
				}
			}
			facts.cma = after
			again, _ := concludePlan(facts)
			assert.Equal(t, after, again, "a second pass changes nothing")
		})
	}
}

func TestConcludePlanReferences(t *testing.T) {
	found := configStates{
		template("t"): {hash: "t"}, deployment("d"): {hash: "d"}, deployment("e"): {hash: "e"},
		template("gone"): {missing: true}, configMap("c"): {foreign: true},
	}
	cma := newCMA(
		[]addonv1beta1.AddOnConfig{template(addonapi.ReservedNoDefault), deployment("d"), configMap("c")},
		placement("p", template("t"), deployment("e"), deployment("d")),
		placement("q", template("gone"), configMap("c")),
	)
	cma.Status.DefaultConfigReferences = []addonv1beta1.DefaultConfigReference{
		{ConfigGroupResource: configMap("c").ConfigGroupResource, DesiredConfig: hashed(configMap("c"), "reported")},
	}
	cma.Status.InstallProgressions = []addonv1beta1.InstallProgression{
		{
			PlacementRef: placement("q").PlacementRef,
			ConfigReferences: []addonv1beta1.InstallConfigReference{
				{
					ConfigGroupResource: template("").ConfigGroupResource, DesiredConfig: hashed(template("gone"), "good"),
					LastAppliedConfig: hashed(template("gone"), "applied"), LastKnownGoodConfig: hashed(template("gone"), "known"),
				},
			},
			Conditions: []metav1.Condition{condition("Progressing", metav1.ConditionTrue, "Progressing", noon.Add(-time.Hour))},
		},
		{PlacementRef: placement("removed").PlacementRef},
	}
	facts := planFacts{
		now: noon, cma: cma, found: found,
		placements: []placementFacts{selects("c1"), selects("c2")},
		addons: []*addonv1beta1.ManagedClusterAddOn{
			addOn("c1", has(configMap("c"), "reported"), has(deployment("e"), "e"), has(deployment("d"), "d"),
				has(template("t"), "t")),
		},
	}
	after, _ := concludePlan(facts)
	assert.Equal(t, []addonv1beta1.DefaultConfigReference{
		{ConfigGroupResource: deployment("").ConfigGroupResource, DesiredConfig: hashed(deployment("d"), "d")},
		{ConfigGroupResource: configMap("").ConfigGroupResource, DesiredConfig: hashed(configMap("c"), "reported")},
	}, after.Status.DefaultConfigReferences)

	require.Len(t, after.Status.InstallProgressions, 2)
	applied := func(config addonv1beta1.AddOnConfig, hash string) addonv1beta1.InstallConfigReference {
		return addonv1beta1.InstallConfigReference{
			ConfigGroupResource: config.ConfigGroupResource, DesiredConfig: hashed(config, hash),
			LastAppliedConfig: hashed(config, hash), LastKnownGoodConfig: hashed(config, hash),
		}
	}
	assert.Equal(t, []addonv1beta1.InstallConfigReference{
		applied(deployment("e"), "e"), applied(deployment("d"), "d"), applied(template("t"), "t"),
	}, after.Status.InstallProgressions[0].ConfigReferences, "ordered by resource, applied once all are done")

	second := after.Status.InstallProgressions[1]
	assert.Equal(t, []addonv1beta1.InstallConfigReference{
		{ConfigGroupResource: configMap("").ConfigGroupResource, DesiredConfig: hashed(configMap("c"), "")},
		{
			ConfigGroupResource: template("").ConfigGroupResource, DesiredConfig: hashed(template("gone"), "good"),
			LastAppliedConfig: hashed(template("gone"), "applied"), LastKnownGoodConfig: hashed(template("gone"), "known"),
		},
	}, second.ConfigReferences, "a config that was added or that went takes nothing from what is known")
	assert.Equal(t, noon.Add(-time.Hour), second.Conditions[0].LastTransitionTime.Time)
}

func TestConcludePlanByLifeCycle(t *testing.T) {
	old := []addonv1beta1.InstallProgression{{PlacementRef: placement("old").PlacementRef}}
	defaults := []addonv1beta1.AddOnConfig{template("t")}
	tests := map[string]struct {
		cma       *addonv1beta1.ClusterManagementAddOn
		lifecycle string
		want      []addonv1beta1.InstallProgression
	}{
		"by hand, placements do not count":                       {cma: newCMA(defaults)},
		"by hand and managed by itself, placements do not count": {cma: newCMA(defaults), lifecycle: "self"},
		"by placements and managed by itself, progressions are not ours": {
			cma: newCMA(defaults, placement("p")), lifecycle: "self", want: old,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.cma.Annotations = map[string]string{names.AnnotationLifecycle: test.lifecycle}
			test.cma.Status.InstallProgressions = old
			after, _ := concludePlan(planFacts{
				now: noon, cma: test.cma, found: configStates{template("t"): {hash: "h"}},
			})
			assert.Equal(t, test.want, after.Status.InstallProgressions)
			assert.Len(t, after.Status.DefaultConfigReferences, 1)
		})
	}
}

func TestProgressDeadline(t *testing.T) {
	tests := map[string]time.Duration{
		"": 0, "None": 0, "90s": 90 * time.Second, "5m": 5 * time.Minute, "2h": 2 * time.Hour, "0s": 0,
		"5|": 0, "5": 0, "m": 0, "-5m": 0, "5mm": 0, "99999999999999999999h": 0, "1.5h": 0,
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			config := clusterv1alpha1.RolloutConfig{ProgressDeadline: text}
			for _, strategy := range []clusterv1alpha1.RolloutStrategy{
				{All: &clusterv1alpha1.RolloutAll{RolloutConfig: config}},
				{Type: clusterv1alpha1.All, All: &clusterv1alpha1.RolloutAll{RolloutConfig: config}},
				{
					Type:        clusterv1alpha1.Progressive,
					Progressive: &clusterv1alpha1.RolloutProgressive{RolloutConfig: config},
				},
				{
					Type:                clusterv1alpha1.ProgressivePerGroup,
					ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{RolloutConfig: config},
				},
			} {
				assert.Equal(t, want, progressDeadline(strategy), string(strategy.Type))
			}
		})
	}
	assert.Zero(t, progressDeadline(clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive}))
}

func BenchmarkConcludePlan(b *testing.B) {
	facts := planFacts{
		now: noon, cma: newCMA([]addonv1beta1.AddOnConfig{deployment("d")}, placement("p", template("t"))),
		found: configStates{template("t"): {hash: "t"}, deployment("d"): {hash: "d"}}, placements: []placementFacts{selects()},
	}
	for i := range 3000 {
		cluster := fmt.Sprintf("c%d", i)
		facts.placements[0].clusters[cluster] = true
		facts.addons = append(facts.addons, addOn(cluster, has(deployment("d"), "d"), has(template("t"), "t")))
	}
	for b.Loop() {
		concludePlan(facts)
	}
}

func selects(clusters ...string) placementFacts {
	facts := placementFacts{exists: true, clusters: map[string]bool{}}
	for _, cluster := range clusters {
		facts.clusters[cluster] = true
	}
	return facts
}
