package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
)

// Stage is how far a cluster is with the configuration that it is to have.
type Stage = causes.Stage

// The stages, in the order in which they are shown.
const (
	StageFailed   = causes.StageFailed
	StageMoving   = causes.StageMoving
	StageWaiting  = causes.StageWaiting
	StageComplete = causes.StageComplete
	// StageAbsent is a cluster that the placement selects, and that has no add-on yet.
	StageAbsent Stage = "absent"
)

// Stages are clusters of one stage with one message.
type Stages struct {
	Stage    Stage    `json:"stage"`
	Clusters []string `json:"clusters"`
	// Message is what the first of them says; empty for those that are complete.
	Message string `json:"message,omitempty"`

	// first is the least name of Clusters.
	first string
}

// StageOf returns how far a cluster is; empty for one that the add-on is not to be on.
func (r Rollout) StageOf(cluster string) Stage {
	for _, placement := range r.Placements {
		for _, one := range placement.Stages {
			if _, has := slices.BinarySearch(one.Clusters, cluster); has {
				return one.Stage
			}
		}
	}
	return ""
}

// stageKey is equal for clusters that are shown together.
type stageKey struct {
	stage   Stage
	message string
}

// PlacementRollout is how far the clusters of one Placement are.
type PlacementRollout struct {
	// Placement is its namespace and name; empty for clusters that no Placement of the add-on selects.
	Placement string `json:"placement"`
	Strategy  string `json:"strategy,omitempty"`
	// Reason, Message and Since are those of condition Progressing of the ClusterManagementAddOn.
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Stages  []Stages   `json:"stages,omitempty"`
}

// Rollout is how far an add-on is on its fleet.
type Rollout struct {
	AddOn      string             `json:"addOn"`
	Placements []PlacementRollout `json:"placements"`
	// Complete reports that each cluster has the configuration that it is to have.
	Complete bool `json:"complete"`
	// Failed is how many clusters count as failed.
	Failed int `json:"failed"`
	// Policy is what the AddOnPolicy of the add-on says, and Windows are the MaintenanceWindows that are for it.
	Policy  *Policy  `json:"policy,omitempty"`
	Windows []Window `json:"windows,omitempty"`
}

// RolloutOf judges how far an add-on is. Of several Placements that select a cluster, the last one counts.
func RolloutOf(name string, d *fleet.Definition, addOns []fleet.AddOn, decisions []fleet.Decision) Rollout {
	r := Rollout{AddOn: name, Complete: true}
	byCluster := make(map[string]*fleet.AddOn, len(addOns))
	for i := range addOns {
		byCluster[addOns[i].Metadata.Namespace] = &addOns[i]
	}
	taken := map[string]bool{}
	if d != nil {
		refs := d.Spec.InstallStrategy.Placements
		for i := range slices.Backward(refs) {
			p := PlacementRollout{Placement: refs[i].Namespace + "/" + refs[i].Name, Strategy: described(refs[i].Strategy)}
			p.told(d, refs[i])
			stages := map[stageKey]*Stages{}
			for _, cluster := range selectedBy(refs[i], decisions) {
				if !taken[cluster] {
					taken[cluster] = true
					add(stages, cluster, byCluster[cluster])
				}
			}
			p.Stages = r.sorted(stages)
			r.Placements = append(r.Placements, p)
		}
		slices.Reverse(r.Placements)
	}
	rest := map[stageKey]*Stages{}
	for i := range addOns {
		if !taken[addOns[i].Metadata.Namespace] {
			add(rest, addOns[i].Metadata.Namespace, &addOns[i])
		}
	}
	if len(rest) > 0 {
		r.Placements = append(r.Placements, PlacementRollout{Stages: r.sorted(rest)})
	}
	return r
}

// told takes over what the hub manager says of a placement.
func (p *PlacementRollout) told(d *fleet.Definition, ref fleet.PlacementRef) {
	for _, progression := range d.Status.InstallProgressions {
		if progression.Namespace != ref.Namespace || progression.Name != ref.Name {
			continue
		}
		c := meta.FindStatusCondition(progression.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
		if c != nil {
			p.Reason, p.Message, p.Since = c.Reason, c.Message, fleet.Instant(c.LastTransitionTime.Time)
		}
	}
}

// selectedBy returns the clusters of a Placement.
func selectedBy(ref fleet.PlacementRef, decisions []fleet.Decision) []string {
	var all []string
	for i := range decisions {
		if isOf(&decisions[i], ref) {
			all = append(all, clustersOf(&decisions[i])...)
		}
	}
	return all
}

// add adds a cluster to those of its stage that say the like.
func add(stages map[stageKey]*Stages, cluster string, addOn *fleet.AddOn) {
	stage, text := stageOf(addOn)
	key := stageKey{stage, Alike(text, cluster)}
	all := stages[key]
	if all == nil {
		all = &Stages{Stage: stage}
		stages[key] = all
	}
	if len(all.Clusters) == 0 || cluster < all.first {
		all.first, all.Message = cluster, text
	}
	all.Clusters = append(all.Clusters, cluster)
}

// stageOf returns how far an add-on is, and what it says of that.
func stageOf(addOn *fleet.AddOn) (Stage, string) {
	if addOn == nil {
		return StageAbsent, "there is no add-on on the cluster yet"
	}
	differs := slices.ContainsFunc(addOn.Status.ConfigReferences, isWanted)
	stage, text := causes.StageOf(addOn.Status.Conditions, differs)
	if stage == StageFailed {
		if p := OfAddOn(addOn, nil); p != nil && p.Message != "" {
			return stage, p.Message
		}
	}
	return stage, text
}

// isWanted reports whether a configuration that an add-on is to have is not in force. One whose content the hub does
// not know is not compared.
func isWanted(c fleet.Config) bool {
	return c.Desired != nil && c.Desired.SpecHash != "" && (c.Applied == nil || c.Applied.SpecHash != c.Desired.SpecHash)
}

// sorted returns stages in their order, the largest of one stage first, and counts them.
func (r *Rollout) sorted(stages map[stageKey]*Stages) []Stages {
	all := make([]Stages, 0, len(stages))
	for _, one := range stages {
		slices.Sort(one.Clusters)
		all = append(all, *one)
		r.Complete = r.Complete && one.Stage == StageComplete
		if one.Stage == StageFailed {
			r.Failed += len(one.Clusters)
		}
	}
	order := []Stage{StageFailed, StageMoving, StageWaiting, StageAbsent, StageComplete}
	slices.SortFunc(all, func(a, b Stages) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Stage), slices.Index(order, b.Stage)),
			cmp.Compare(len(b.Clusters), len(a.Clusters)), strings.Compare(a.Clusters[0], b.Clusters[0]))
	})
	return all
}

// described describes a strategy in the words of its fields.
func described(s clusterv1alpha1.RolloutStrategy) string {
	var config clusterv1alpha1.RolloutConfig
	text := cmp.Or(string(s.Type), string(clusterv1alpha1.All))
	switch {
	case s.Progressive != nil && s.Type == clusterv1alpha1.Progressive:
		config = s.Progressive.RolloutConfig
		if at := s.Progressive.MaxConcurrency.String(); at != "0" {
			text += fmt.Sprintf(", %s at once", at)
		}
	case s.ProgressivePerGroup != nil && s.Type == clusterv1alpha1.ProgressivePerGroup:
		config = s.ProgressivePerGroup.RolloutConfig
	}
	if of := config.MaxFailures.String(); of != "0" {
		text += fmt.Sprintf(", %s may fail", of)
	}
	if soak := config.MinSuccessTime.Duration; soak > 0 {
		text += ", soak " + strings.TrimSuffix(soak.String(), "0s")
	}
	if config.ProgressDeadline != "" && config.ProgressDeadline != "None" {
		text += ", deadline " + config.ProgressDeadline
	}
	return text
}
