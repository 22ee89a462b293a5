package report

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/names"
)

// Moved is a cluster with how far it is.
type Moved struct {
	Cluster string
	Stage   Stage
}

// Wave are clusters of a placement that may get a change before those of the next wave.
type Wave struct {
	// Name says which clusters they are.
	Name string
	// Clusters are those that are furthest first.
	Clusters []Moved
}

// Waves returns the waves of a rollout: those that the planner of the hub manager makes of the decision groups of its
// placement. ref is the placement; nil for clusters that no placement selects.
func Waves(p PlacementRollout, ref *fleet.PlacementRef, decisions []fleet.Decision) []Wave {
	groups, strategy := map[string]group{}, clusterv1alpha1.RolloutStrategy{}
	if ref != nil {
		groups, strategy = decisionGroups(*ref, decisions), ref.Strategy
	}
	of, clusters := planner.WavesOf(strategy), map[planner.WaveID][]Moved{}
	for _, stages := range p.Stages {
		for _, cluster := range stages.Clusters {
			wave := of.Of(groups[cluster].index, groups[cluster].name)
			clusters[wave] = append(clusters[wave], Moved{Cluster: cluster, Stage: stages.Stage})
		}
	}
	sorted := make([]Wave, 0, len(clusters))
	for _, wave := range slices.SortedFunc(maps.Keys(clusters), planner.WaveID.Compare) {
		slices.SortStableFunc(clusters[wave], func(a, b Moved) int {
			return cmp.Or(cmp.Compare(far(a.Stage), far(b.Stage)), cmp.Compare(a.Cluster, b.Cluster))
		})
		sorted = append(sorted, Wave{Name: wave.String(), Clusters: clusters[wave]})
	}
	return sorted
}

// far is how far a stage is, from the one that is furthest.
func far(s Stage) int {
	return slices.Index([]Stage{StageComplete, StageFailed, StageMoving, StageWaiting, StageAbsent}, s)
}

// group is a decision group.
type group struct {
	index int
	name  string
}

// decisionGroups returns the decision group of each cluster of a placement.
func decisionGroups(ref fleet.PlacementRef, decisions []fleet.Decision) map[string]group {
	all := map[string]group{}
	for i := range decisions {
		d := &decisions[i]
		if !isOf(d, ref) {
			continue
		}
		index, err := strconv.Atoi(d.Metadata.Labels[names.LabelDecisionGroupIndex])
		if err != nil {
			index = -1
		}
		for _, cluster := range clustersOf(d) {
			all[cluster] = group{index: index, name: d.Metadata.Labels[names.LabelDecisionGroupName]}
		}
	}
	return all
}

// Reached is when a cluster reached its stage.
type Reached struct {
	At      time.Time
	Cluster string
	Stage   Stage
}

// courseOf is how long before its end the course of a rollout begins that is complete: nothing says when it began.
const courseOf = 24 * time.Hour

// Course returns when clusters of a rollout were complete or failed, or began to move, the first one first: since the
// rollout began, or of the last day of one that is complete.
func Course(p PlacementRollout, addOns []fleet.AddOn) []Reached {
	stages := Rollout{Placements: []PlacementRollout{p}}.stages()
	begin := time.Time{}
	if p.Since != nil && p.Reason != addonv1beta1.ProgressingReasonCompleted {
		begin = *p.Since
	}
	var all []Reached
	for i := range addOns {
		cluster := addOns[i].Metadata.Namespace
		if at := reachedAt(&addOns[i], stages[cluster]); !at.IsZero() && !at.Before(begin) {
			all = append(all, Reached{At: at, Cluster: cluster, Stage: stages[cluster]})
		}
	}
	slices.SortFunc(all, func(a, b Reached) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Cluster, b.Cluster)) })
	if begin.IsZero() && len(all) > 0 {
		last := all[len(all)-1].At
		all = slices.DeleteFunc(all, func(r Reached) bool { return last.Sub(r.At) > courseOf })
	}
	return all
}

// reachedAt is when an add-on reached its stage; zero where nothing says it.
func reachedAt(a *fleet.AddOn, stage Stage) time.Time {
	kind := addonv1beta1.ManagedClusterAddOnConditionProgressing
	switch stage {
	case StageFailed:
		kind = names.ConditionRolloutFailed
	case StageComplete, StageMoving:
	case StageWaiting, StageAbsent:
		return time.Time{}
	default:
		return time.Time{}
	}
	c := meta.FindStatusCondition(a.Status.Conditions, kind)
	if c == nil {
		return time.Time{}
	}
	return fleet.Known(c.LastTransitionTime.Time)
}

// Certificate is a certificate of an agent or of an add-on, as its condition tells.
type Certificate struct {
	// Of names the add-on; empty for that of the agent.
	Of       string
	From, To time.Time
	// Late reports that it should have been replaced, and Ended that it is over.
	Late, Ended bool
}

// Until is when it ends.
func (c Certificate) Until() *time.Time { return &c.To }

// Certificates returns the certificates of a cluster and of its add-ons, that of the agent first.
func Certificates(c *fleet.Cluster, addOns []fleet.AddOn, now time.Time) []Certificate {
	var all []Certificate
	if c != nil {
		if life, known := lifeOf(c.Status.Conditions); known {
			all = append(all, Certificate{From: life.From, To: life.To, Late: life.Late(now), Ended: !life.To.After(now)})
		}
	}
	for i := range addOns {
		if life, known := lifeOf(addOns[i].Status.Conditions); known {
			all = append(all, Certificate{
				Of: addOns[i].Metadata.Name, From: life.From, To: life.To, Late: life.Late(now), Ended: !life.To.After(now),
			})
		}
	}
	return all
}
