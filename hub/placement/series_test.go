package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// TestASeriesWithAnySelectionEnds: each pass writes a few slices of a plan. Numbers of clusters, groups and taints change
// between the passes, and what is half written counts as selected.
func TestASeriesWithAnySelectionEnds(t *testing.T) {
	worst, selectedSum := 0.0, 0
	for seed := range 1000 {
		random := rand.New(rand.NewPCG(uint64(seed), 20))
		most := 1 + random.IntN(3)
		there := map[string]*clusterv1beta1.PlacementDecision{}
		f := facts{now: noon(), placement: placement(), bindings: bound(setGlobal)}
		var clusters []*clusterv1.ManagedCluster
		for i := range 2 + random.IntN(12) {
			c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%02d", i), Labels: map[string]string{}}}
			c.Spec.HubAcceptsClient = true
			clusters = append(clusters, c)
		}
		change := func() {
			strategy := &f.placement.Spec.DecisionStrategy.GroupStrategy
			strategy.ClustersPerDecisionGroup = intstr.FromInt32(int32(1 + random.IntN(4)))
			if random.IntN(3) == 0 {
				strategy.ClustersPerDecisionGroup = intstr.FromString(fmt.Sprint(1+random.IntN(100), "%"))
			}
			strategy.DecisionGroups = nil
			for _, name := range []string{"a", "b"}[:random.IntN(3)] {
				g := clusterv1beta1.DecisionGroup{GroupName: name}
				g.ClusterSelector.LabelSelector.MatchLabels = map[string]string{"group": name}
				strategy.DecisionGroups = append(strategy.DecisionGroups, g)
			}
			f.placement.Spec.NumberOfClusters = nil
			if random.IntN(2) == 0 {
				f.placement.Spec.NumberOfClusters = new(int32(random.IntN(len(clusters) + 1)))
			}
			f.clusters = nil
			for i, c := range clusters {
				c = c.DeepCopy()
				c.Labels["group"] = []string{"a", "b", "c"}[random.IntN(3)]
				switch random.IntN(6) {
				case 0:
					continue
				case 1:
					c.Spec.Taints = []clusterv1.Taint{{Key: "x", Effect: clusterv1.TaintEffectNoSelect}}
				case 2:
					c.Spec.Taints = []clusterv1.Taint{{Key: "x", Effect: clusterv1.TaintEffectNoSelectIfNew}}
				}
				clusters[i] = c
				f.clusters = append(f.clusters, c)
			}
		}
		holds := func() map[string]bool {
			all := map[string]bool{}
			for _, o := range there {
				for _, d := range o.Status.Decisions {
					all[d.ClusterName] = true
				}
			}
			return all
		}
		plan := func() plan {
			f.decisionSlices = slices.Collect(maps.Values(there))
			return decided(f)
		}
		pass := func() (wrote int, more bool) {
			held, p := holds(), plan()
			if p.misconfigured != nil {
				t.Fatal(p.misconfigured)
			}
			for _, s := range p.layout.Slices {
				if !s.Changed() {
					continue
				}
				if wrote == most {
					return wrote, true
				}
				wrote++
				if s.Want == nil {
					delete(there, s.Have.Name)
				} else {
					s.Want.UID = types.UID(s.Want.Name)
					there[s.Want.Name] = s.Want
				}
				now := holds()
				for _, name := range p.selection.names {
					if held[name] && !now[name] {
						t.Fatalf("seed %d: %s is missing", seed, name)
					}
				}
			}
			return wrote, false
		}
		for range random.IntN(10) {
			if random.IntN(3) > 0 {
				change()
			}
			if f.clusters != nil {
				pass()
			}
		}
		change()
		planned := 0
		for _, s := range plan().layout.Slices {
			if s.Changed() {
				planned++
			}
		}
		total := 0
		for n := 0; ; n++ {
			wrote, more := pass()
			total += wrote
			if !more {
				break
			}
			if n > 200 {
				t.Fatalf("seed %d: %d writes a pass, planned %d, still going on after %d writes", seed, most, planned, total)
			}
		}
		if wrote, _ := pass(); wrote > 0 {
			t.Errorf("seed %d: a pass after the last one writes", seed)
		}
		if n := f.placement.Spec.NumberOfClusters; n != nil && len(holds()) > int(*n) {
			t.Errorf("seed %d: %d clusters of %d", seed, len(holds()), *n)
		}
		selectedSum += len(holds())
		if planned > 0 {
			worst = max(worst, float64(total)/float64(planned))
		}
	}
	t.Logf("at most %.1f times the writes of the first plan; %d clusters selected in all", worst, selectedSum)
}
