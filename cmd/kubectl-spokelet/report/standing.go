package report

import (
	"maps"
	"slices"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
)

// Standing is how an add-on is on one cluster. Each has one on each cluster.
type Standing string

// The standings, in the order in which they count.
const (
	// StandsBadly is an add-on with a problem of its own, or that a rollout counts as failed.
	StandsBadly Standing = "not well"
	// StandsBehind is one whose problem is explained by that of its cluster.
	StandsBehind Standing = "behind its cluster"
	StandsMoving Standing = "moving"
	// StandsWaiting works, and has not the configuration that it is to have.
	StandsWaiting Standing = "waiting"
	// StandsAbsent is on a cluster that a placement selects, and not there yet.
	StandsAbsent Standing = "not there yet"
	StandsWell   Standing = "well"
)

// Standings are all standings, what is wrong first.
func Standings() []Standing {
	return []Standing{StandsBadly, StandsBehind, StandsMoving, StandsWaiting, StandsAbsent, StandsWell}
}

// AddOnRow is one row of the matrix of add-ons and standings.
type AddOnRow struct {
	Name string
	// All is on how many clusters it is or is to be, and Counts by how it stands there.
	All    int
	Counts map[Standing]int
	// Unknown reports that neither is known, because add-ons may not be read.
	Unknown bool
	// Code is that of a rollout that stopped; empty for none. Message is what the first rollout says that is not complete.
	Code    causes.Code
	Message string
}

// Matrix counts the clusters of each add-on of a fleet by how the add-on stands there. problems are those of the fleet,
// and rollouts how far each add-on is; one that is left out is not known.
func Matrix(f Fleet, problems []Problem, rollouts map[string]Rollout) []AddOnRow {
	found := map[identity]*Problem{}
	for i := range problems {
		p := &problems[i]
		found[identity{p.Kind, p.Namespace, p.Name}] = p
	}
	rows := map[string]*AddOnRow{}
	for _, name := range addOnNames(f) {
		row := &AddOnRow{
			Name: name, Counts: map[Standing]int{}, Unknown: f.Lacks != nil && f.Lacks("managedclusteraddons"),
		}
		if p := found[identity{KindDefinition, "", name}]; p != nil {
			row.Code = p.Code
		}
		rows[name] = row
	}
	for i := range f.Definitions {
		rows[f.Definitions[i].Metadata.Name].Message = progressOf(&f.Definitions[i])
	}
	counted := map[string]bool{}
	for name, far := range rollouts {
		row := rows[name]
		for cluster, stage := range far.stages() {
			if row != nil {
				row.add(StandingOf(found[identity{KindAddOn, cluster, name}], stage))
			}
		}
		counted[name] = true
	}
	for i := range f.AddOns {
		m := &f.AddOns[i].Metadata
		if !counted[m.Name] {
			rows[m.Name].add(StandingOf(found[identity{KindAddOn, m.Namespace, m.Name}], StageComplete))
		}
	}
	all := make([]AddOnRow, 0, len(rows))
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		all = append(all, *rows[name])
	}
	return all
}

// add counts one cluster.
func (r *AddOnRow) add(s Standing) {
	r.All++
	r.Counts[s]++
}

// StandingOf is how an add-on stands by its problem, which is nil for none, and by how far its rollout is.
func StandingOf(p *Problem, stage Stage) Standing {
	switch {
	case p != nil && p.Behind:
		return StandsBehind
	case p != nil, stage == StageFailed:
		return StandsBadly
	case stage == StageMoving:
		return StandsMoving
	case stage == StageWaiting:
		return StandsWaiting
	case stage == StageAbsent:
		return StandsAbsent
	}
	return StandsWell
}

// stages returns the stage of each cluster.
func (r Rollout) stages() map[string]Stage {
	all := map[string]Stage{}
	for _, placement := range r.Placements {
		for _, one := range placement.Stages {
			for _, cluster := range one.Clusters {
				all[cluster] = one.Stage
			}
		}
	}
	return all
}

// CodeOf returns the code of what could not be read.
func CodeOf(g fleet.Gap) causes.Code {
	switch {
	case len(g.Objects) > 0:
		return ""
	case g.Silent, g.Refused:
		return causes.ClusterUnreachable
	case g.Missing:
		return causes.DefinitionMissing
	}
	return causes.RightMissing
}
