package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/spokelet/spokelet/hub/placement/layout"
	"github.com/spokelet/spokelet/internal/names"
)

// bound binds sets to the namespace of the Placement.
func bound(sets ...string) []*clusterv1beta2.ManagedClusterSetBinding {
	var all []*clusterv1beta2.ManagedClusterSetBinding
	for _, name := range sets {
		binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		binding.Spec.ClusterSet = name
		all = append(all, binding)
	}
	return all
}

// set is a ManagedClusterSet; without labels it is exclusive.
func set(name string, labels map[string]string) *clusterv1beta2.ManagedClusterSet {
	s := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if labels != nil {
		s.Spec.ClusterSelector.SelectorType = clusterv1beta2.LabelSelector
		s.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{MatchLabels: labels}
	}
	return s
}

// setFacts are clusters a and b in set blue and cluster c in set default; sets blue, red (empty) and prod exist.
func setFacts() facts {
	f := facts{now: noon(), placement: placement(), clusters: everyCluster(), sets: map[string]*clusterv1beta2.ManagedClusterSet{
		"blue": set("blue", nil), "red": set("red", nil), "prod": set("prod", map[string]string{"env": "prod"}),
		"odd": {Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{
			SelectorType: "Magic",
		}}},
	}}
	for _, cluster := range f.clusters {
		cluster.Labels[clusterv1beta2.ClusterSetLabel] = "blue"
		if cluster.Name == "c" {
			cluster.Labels[clusterv1beta2.ClusterSetLabel] = "default"
		}
	}
	return f
}

// earlierPage is a page that selects clusters, as versions wrote it that asked for no bindings.
func earlierPage(clusters ...string) *clusterv1beta1.PlacementDecision {
	r := layout.Request{Placement: placement(), Selected: map[string]int{}}
	for _, name := range clusters {
		r.Selected[name] = 0
	}
	r.Size, _ = layout.ParseSize(intstr.FromString("100%"))
	return layout.Plan(r).Slices[0].Want
}

func TestAPlacementSelectsFromTheSetsThatAreBound(t *testing.T) {
	tests := map[string]struct {
		change func(*facts)
		want   []string
		reason string
		says   string
	}{
		"nothing without a binding": {
			func(*facts) {}, nil, reasonNoBindings, "No ManagedClusterSet is bound to namespace ns",
		},
		"an exclusive set": {
			func(f *facts) { f.bindings = bound("blue") }, []string{"a", "b"}, reasonAllScheduled, "",
		},
		"a set that selects by label": {
			func(f *facts) { f.bindings = bound("prod") }, []string{"a"}, reasonAllScheduled, "",
		},
		"several sets": {
			func(f *facts) { f.bindings = bound("prod", setDefault) }, []string{"a", "c"}, reasonAllScheduled, "",
		},
		"the global set, which needs no object": {
			func(f *facts) { f.bindings = bound(setGlobal) }, []string{"a", "b", "c"}, reasonAllScheduled, "",
		},
		"the global set, whatever its object says": {
			func(f *facts) { f.bindings, f.sets[setGlobal] = bound(setGlobal), set(setGlobal, nil) },
			[]string{"a", "b", "c"}, reasonAllScheduled, "",
		},
		"an object of that name counts, where an annotation leaves it to its users": {
			func(f *facts) {
				f.bindings, f.sets[setGlobal] = bound(setGlobal), set(setGlobal, map[string]string{"env": "dev"})
				f.sets[setGlobal].Annotations = map[string]string{"cluster.open-cluster-management.io/autoupdate": "false"}
			}, []string{"b"}, reasonAllScheduled, "",
		},
		"the default set, which needs no object either": {
			func(f *facts) { f.bindings = bound(setDefault) }, []string{"c"}, reasonAllScheduled, "",
		},
		"only the sets that it asks for": {
			func(f *facts) {
				f.bindings, f.placement.Spec.ClusterSets = bound("blue", setDefault), []string{setDefault, "red"}
			}, []string{"c"}, reasonAllScheduled, "",
		},
		"none of which may be bound": {
			func(f *facts) { f.bindings, f.placement.Spec.ClusterSets = bound("blue"), []string{"red"} },
			nil, reasonNoIntersection, "spec.clusterSets (red)",
		},
		"not from a set that does not exist": {
			func(f *facts) { f.bindings = bound("gone") }, nil, reasonNoBindings, "ManagedClusterSet gone does not exist",
		},
		"nor by a binding of another name": {
			func(f *facts) { f.bindings = bound("blue"); f.bindings[0].Name = "x" },
			nil, reasonNoBindings, "binding x does not have the name of its set",
		},
		"nor by one that is being deleted": {
			func(f *facts) {
				at := metav1.NewTime(noon())
				f.bindings = bound("blue")
				f.bindings[0].DeletionTimestamp = &at
			}, nil, reasonNoBindings, "",
		},
		"nothing where the set is empty": {
			func(f *facts) { f.bindings = bound("red") }, nil, reasonEmptySets, "No ManagedCluster is in ManagedClusterSet red",
		},
		"a binding that goes takes its clusters along": {
			func(f *facts) {
				f.decisionSlices = []*clusterv1beta1.PlacementDecision{earlierPage("a", "b")}
				f.decisionSlices[0].Annotations[names.AnnotationSetBindings] = names.SetBindingsHonoured
			}, nil, reasonNoBindings, "No ManagedClusterSet is bound",
		},
		"what an earlier version selected stays": {
			func(f *facts) { f.decisionSlices = []*clusterv1beta1.PlacementDecision{earlierPage("a", "c")} },
			[]string{"a", "c"}, reasonNoBindings, "without asking: a, c",
		},
		"also after the hub manager was removed in the meantime": {
			func(f *facts) {
				f.decisionSlices = []*clusterv1beta1.PlacementDecision{earlierPage("a", "c")}
				f.decisionSlices[0].Annotations[names.AnnotationStickyPages] = "false"
			}, []string{"a", "c"}, reasonNoBindings, "without asking: a, c",
		},
		"and no more than that": {
			func(f *facts) {
				f.bindings, f.decisionSlices = bound(setDefault), []*clusterv1beta1.PlacementDecision{earlierPage("a")}
			}, []string{"a", "c"}, reasonNoBindings, "without asking: a.",
		},
		"as long as it matches": {
			func(f *facts) {
				f.decisionSlices = []*clusterv1beta1.PlacementDecision{earlierPage("a", "c")}
				f.placement.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{
					RequiredClusterSelector: labelled(by("env", "In", "prod")),
				}}
			}, []string{"a"}, reasonNoBindings, "without asking: a.",
		},
		"until a person lets it go": {
			func(f *facts) {
				f.decisionSlices = []*clusterv1beta1.PlacementDecision{earlierPage("a", "c")}
				f.placement.Annotations = map[string]string{names.AnnotationSetBindings: names.SetBindingsHonoured}
			}, nil, reasonNoBindings, "No ManagedClusterSet is bound",
		},
		"what OCM selected does not": {
			func(f *facts) {
				f.decisionSlices = []*clusterv1beta1.PlacementDecision{earlierPage("a", "c")}
				f.decisionSlices[0].Annotations = nil
			}, nil, reasonNoBindings, "No ManagedClusterSet is bound",
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := setFacts()
			tc.change(&f)
			p := decided(f)
			require.NoError(t, p.misconfigured)
			assert.ElementsMatch(t, tc.want, p.selection.names)
			status := conclude(f, p, true, nil)
			c := meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
			require.NotNil(t, c)
			assert.Equal(t, tc.reason, c.Reason)
			assert.Contains(t, c.Message, tc.says)
			assert.Equal(t, len(tc.want), int(status.NumberOfSelectedClusters))
		})
	}
}

func TestASetThatCannotBeUnderstoodLeavesTheDecisions(t *testing.T) {
	f := setFacts()
	f.bindings = bound("odd")
	p := decided(f)
	require.ErrorContains(t, p.misconfigured, `ManagedClusterSet odd: spec.clusterSelector.selectorType "Magic"`)
	assert.Empty(t, p.layout.Slices)
}

func TestPagesAreMarkedOnceAllTheirClustersAreBound(t *testing.T) {
	marks := func(change func(*facts)) []string {
		f := setFacts()
		change(&f)
		var all []string
		for _, p := range decided(f).layout.Slices {
			all = append(all, p.Want.Annotations[names.AnnotationSetBindings])
		}
		return all
	}
	earlier := func(f *facts) { f.decisionSlices = []*clusterv1beta1.PlacementDecision{earlierPage("a", "b")} }
	assert.Equal(t, []string{names.SetBindingsHonoured}, marks(func(*facts) {}), "a new page")
	assert.Equal(t, []string{""}, marks(earlier), "clusters without a binding")
	assert.Equal(t, []string{names.SetBindingsHonoured}, marks(func(f *facts) { earlier(f); f.bindings = bound("blue") }))
}
