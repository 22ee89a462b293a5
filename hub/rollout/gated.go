package rollout

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/policies"
)

// gatedContent is a content that clusters wait for, or a wave of it.
type gatedContent struct {
	policies.Content

	// placement is the index of the placement that the wave is of, and wave which one it is.
	placement int
	wave      planner.WaveID
}

// order is 0 for waves that have their turn, which come first, and 1 for others.
func (c gatedContent) order() int {
	if c.Turn {
		return 0
	}
	return 1
}

// contentsOf are contents that clusters wait for because of the gate, by their names.
type contentsOf map[string]gatedContent

// add counts a cluster that waits for a content.
func (all contentsOf) add(waited gatedContent, references []addonv1beta1.ConfigReference) {
	content, known := all[waited.Name]
	if !known {
		content = waited
		content.Configurations = message.Items(configurationsOf(references), policies.MaxConfigurations)
	}
	content.Clusters++
	all[waited.Name] = content
}

// configurationsOf names configurations for people.
func configurationsOf(references []addonv1beta1.ConfigReference) (all []string) {
	for _, r := range references {
		if r.DesiredConfig != nil {
			all = append(all, confighash.Key(r.ConfigGroupResource, r.DesiredConfig.ConfigReferent))
		}
	}
	return all
}

// merge adds the contents of another placement.
func (all contentsOf) merge(others contentsOf) {
	for name, other := range others {
		content, known := all[name]
		if !known {
			all[name] = other
			continue
		}
		content.Clusters += other.Clusters
		all[name] = content
	}
}

// turn notes which waves of a placement have their turn.
func (all contentsOf) turn(placement int, result planner.Result) {
	for name, content := range all {
		if content.Wave != "" && content.placement == placement && result.Wave > 0 && content.wave == result.Turn {
			content.Turn = true
			all[name] = content
		}
	}
}

// gateOf returns the gate as it is for a cluster in its wave, and which wave that is.
func (s *survey) gateOf(cluster string) (gate.Gate, planner.WaveID) {
	if !s.f.gate.PerWave() || !addonconfig.Planned(s.placement.Strategy) {
		return s.f.gate, planner.WaveID{}
	}
	group, selected := s.f.placements[s.index].Groups[cluster]
	if !selected {
		group = s.leaving[cluster]
	}
	wave, placement := s.waves.Of(group.Index, group.Name), s.f.placements[s.index].Key.String()
	return s.f.gate.In(gate.Wave{
		Key: placement + "/" + wave.Key(), Title: wave.String() + " of placement " + placement,
	}), wave
}

// contentOf returns the name of the content that a cluster is to get.
func (s *survey) contentOf(cluster string) string {
	return gate.ContentName(s.f.cma.Name, s.of.target(cluster))
}

// verdict returns whether the gate lets a cluster begin to change to its target.
func (s *survey) verdict(cluster string) gate.Verdict {
	if v, decided := s.undo.verdict(s.f, cluster, s.index); decided {
		return v
	}
	if s.f.gate.Open() {
		return gate.Verdict{}
	}
	in, _ := s.gateOf(cluster)
	return in.Judge(s.f.clusters[cluster], s.contentOf(cluster), s.f.now)
}

// waited returns what a cluster waits for that the gate holds.
func (s *survey) waited(cluster string) gatedContent {
	in, wave := s.gateOf(cluster)
	content := s.contentOf(cluster)
	if s.undo.isExhausted() { // A person approves the content, and no wave of it.
		return gatedContent{Content: policies.Content{Name: content}}
	}
	waited := gatedContent{Content: policies.Content{Name: in.NameOf(content)}}
	if s.f.gate.Policy() != nil {
		waited.Approved = in.Approved(content)
	}
	if waited.Name != content {
		waited.Content.Content, waited.Wave = content, in.Title()
		waited.placement, waited.wave = s.index, wave
	}
	return waited
}

// unused returns the approved names that no content, and no wave of one, has that a cluster is to get now. While it is
// uncertain which clusters are selected, that is what the status says.
func (f facts) unused(surveys []survey, uncertain bool) []string {
	policy := f.gate.Policy()
	if policy == nil || len(policy.Spec.Approved) == 0 {
		return nil
	}
	if uncertain {
		return policy.Status.Unused
	}
	left, placed := sets.New(policy.Spec.Approved...), sets.New[string]()
	for i := range surveys {
		s := &surveys[i]
		left.Delete(gate.ContentName(f.cma.Name, s.of.common)) // Also before the first cluster is selected.
		for _, c := range s.placement.Clusters {
			placed.Insert(c.Name)
			content := s.contentOf(c.Name)
			in, _ := s.gateOf(c.Name)
			left.Delete(content)
			left.Delete(in.NameOf(content))
		}
	}
	for cluster, m := range f.members {
		if !placed.Has(cluster) {
			target := f.target(m.addOn(), -1)
			left.Delete(gate.NameOfTarget(f.cma.Name, target))
		}
	}
	names := sets.List(left)
	return names[:min(len(names), policies.MaxContents)]
}

// concludeGate returns the policy with the status after a plan.
func concludeGate(policy *policies.AddOnPolicy, gated contentsOf) *policies.AddOnPolicy {
	after := policy.DeepCopy()
	after.Status = policies.AddOnPolicyStatus{ObservedGeneration: policy.Generation}
	all := make([]gatedContent, 0, len(gated))
	for _, content := range gated {
		after.Status.Waiting += content.Clusters
		all = append(all, content)
	}
	slices.SortFunc(all, func(a, b gatedContent) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(a.placement, b.placement), a.wave.Compare(b.wave),
			cmp.Compare(b.Clusters, a.Clusters), strings.Compare(a.Name, b.Name))
	})
	for _, content := range all[:min(len(all), policies.MaxContents)] {
		after.Status.Contents = append(after.Status.Contents, content.Content)
	}
	return after
}
