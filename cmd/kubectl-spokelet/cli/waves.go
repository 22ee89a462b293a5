package cli

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/change"
	"github.com/spokelet/spokelet/internal/names"
)

// typed decodes the objects of a kind.
func typed[T any](all []*unstructured.Unstructured, kind string) ([]T, error) {
	var found []T
	for _, u := range all {
		if u.GetKind() != kind {
			continue
		}
		raw, err := u.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		var one T
		if err := json.Unmarshal(raw, &one); err != nil {
			return nil, fmt.Errorf("decoding %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		found = append(found, one)
	}
	return found, nil
}

// rolloutsOf returns how a change of an add-on moves over the clusters that it changes. Of several Placements that
// select a cluster, the last one decides about it.
func rolloutsOf(addOn string, all []*unstructured.Unstructured, clusters []string) ([]change.Rollout, error) {
	definitions, err := typed[addonv1beta1.ClusterManagementAddOn](all, "ClusterManagementAddOn")
	if err != nil {
		return nil, err
	}
	placements, err := typed[clusterv1beta1.Placement](all, "Placement")
	if err != nil {
		return nil, err
	}
	decisions, err := typed[clusterv1beta1.PlacementDecision](all, "PlacementDecision")
	if err != nil {
		return nil, err
	}
	left := make(map[string]bool, len(clusters))
	for _, cluster := range clusters {
		left[cluster] = true
	}
	var rollouts []change.Rollout
	for i := range definitions {
		if definitions[i].Name != addOn {
			continue
		}
		refs := definitions[i].Spec.InstallStrategy.Placements
		for at := len(refs) - 1; at >= 0; at-- {
			selected, moves := selection(refs[at].PlacementRef, decisions, left)
			if len(moves) == 0 {
				continue
			}
			size := groupSize(refs[at].PlacementRef, placements)
			name := refs[at].Namespace + "/" + refs[at].Name
			rollouts = append(rollouts, change.Waves(change.Moving{
				Placement: name, Strategy: refs[at].RolloutStrategy, GroupSize: size, Selected: selected, Changed: moves,
			}))
			for cluster := range moves {
				delete(left, cluster)
			}
		}
	}
	return rollouts, nil
}

// selection returns the clusters that a Placement selects, and which of them are among others.
func selection(
	ref addonv1beta1.PlacementRef, decisions []clusterv1beta1.PlacementDecision, among map[string]bool,
) (selected []change.Selected, moves map[string]bool) {
	moves = map[string]bool{}
	for i := range decisions {
		d := &decisions[i]
		if d.Namespace != ref.Namespace || d.Labels[names.LabelPlacement] != ref.Name {
			continue
		}
		group, err := strconv.Atoi(d.Labels[names.LabelDecisionGroupIndex])
		if err != nil {
			group = -1
		}
		for _, decision := range d.Status.Decisions {
			selected = append(selected, change.Selected{
				Name: decision.ClusterName, Group: group, GroupName: d.Labels[names.LabelDecisionGroupName],
			})
			if among[decision.ClusterName] {
				moves[decision.ClusterName] = true
			}
		}
	}
	return selected, moves
}

// groupSize returns clustersPerDecisionGroup of a Placement; zero for none.
func groupSize(ref addonv1beta1.PlacementRef, placements []clusterv1beta1.Placement) intstr.IntOrString {
	for i := range placements {
		if placements[i].Namespace == ref.Namespace && placements[i].Name == ref.Name {
			return placements[i].Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup
		}
	}
	return intstr.IntOrString{}
}
