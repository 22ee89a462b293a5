package rollout

import (
	"cmp"
	"slices"
	"strings"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/policies"
)

// contentsOf are contents that clusters wait for because of the gate, by their names.
type contentsOf map[string]policies.Content

// add counts a cluster that waits for a content.
func (all contentsOf) add(name string, references []addonv1beta1.ConfigReference) {
	content, known := all[name]
	if !known {
		content.Name = name
		for _, r := range references {
			if r.DesiredConfig != nil {
				content.Configurations = append(content.Configurations,
					confighash.Key(r.ConfigGroupResource, r.DesiredConfig.ConfigReferent))
			}
		}
	}
	content.Clusters++
	all[name] = content
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

// concludeGate returns the policy with the status after a plan.
func concludeGate(policy *policies.AddOnPolicy, gated contentsOf) *policies.AddOnPolicy {
	after := policy.DeepCopy()
	after.Status = policies.AddOnPolicyStatus{ObservedGeneration: policy.Generation}
	for _, content := range gated {
		content.Approved = slices.Contains(policy.Spec.Approved, content.Name)
		after.Status.Waiting += content.Clusters
		after.Status.Contents = append(after.Status.Contents, content)
	}
	slices.SortFunc(after.Status.Contents, func(a, b policies.Content) int {
		return cmp.Or(cmp.Compare(b.Clusters, a.Clusters), strings.Compare(a.Name, b.Name))
	})
	after.Status.Contents = after.Status.Contents[:min(len(after.Status.Contents), policies.MaxContents)]
	return after
}
