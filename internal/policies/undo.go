package policies

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of what a status keeps.
const (
	// MaxPlacements is of how many placements contents are kept.
	MaxPlacements = 64
	// MaxCompleted is how many contents of each are kept that completed.
	MaxCompleted = 3
	// MaxConfigurations is how many configurations a content may have that is kept.
	MaxConfigurations = 32
	// MaxUndone is how many contents that were undone are kept.
	MaxUndone = 128
	// MaxNames is how many configurations all completed contents have together, and all that were undone.
	MaxNames = 1000
)

// PlacementContents are the contents of one placement of an add-on.
type PlacementContents struct {
	// Placement is its namespace and name; "-" means the add-ons that no placement installs.
	Placement string `json:"placement"`
	// Content is the name of the content that the specs ask for; empty for one that does not install the add-on now.
	Content string `json:"content"`
	// Completed are contents that completed for it, the last one first: it returns to the first that was not undone.
	Completed []CompletedContent `json:"completed,omitempty"`
	// Problem is why an undo does not happen that was asked for; empty where nothing hinders one.
	Problem string `json:"problem,omitempty"`
}

// NoPlacement stands for the add-ons that no placement installs.
const NoPlacement = "-"

// CompletedContent is a content that completed for a placement.
type CompletedContent struct {
	// Content is its name.
	Content string `json:"content"`
	// Configurations are those that it consists of, in their order.
	Configurations []ConfigurationContent `json:"configurations"`
}

// ConfigurationContent is a configuration with one content, which its hash identifies.
type ConfigurationContent struct {
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	SpecHash  string `json:"specHash,omitempty"`
}

// Who undid a content.
const (
	ByPerson = "Person"
	ByPolicy = "Policy"
)

// Undone is a content that was undone.
type Undone struct {
	// Content is its name.
	Content string `json:"content"`
	// Configurations are those that it consists of.
	Configurations []string `json:"configurations,omitempty"`
	// Since is since when it is undone, Why is the reason, and By who did it.
	Since metav1.Time `json:"since"`
	Why   string      `json:"why,omitempty"`
	By    string      `json:"by"`
	// Action is ActionUndo where only clusters return that failed, and ActionUndoAll where all of Placements do.
	Action Action `json:"action"`
	// Placements are those whose clusters return, with ActionUndo those that failed. None means all where a person undid
	// it.
	Placements []string `json:"placements,omitempty"`
	// Tries are those where it counts as a try, with ActionUndo: more clusters failed than the strategy tolerates.
	Tries []string `json:"tries,omitempty"`
	// Clusters is how many clusters are kept from it.
	Clusters int32 `json:"clusters"`
}

func copyPlacements(all []PlacementContents) []PlacementContents {
	all = slices.Clone(all)
	for i := range all {
		all[i].Completed = slices.Clone(all[i].Completed)
		for j := range all[i].Completed {
			all[i].Completed[j].Configurations = slices.Clone(all[i].Completed[j].Configurations)
		}
	}
	return all
}

func copyUndone(all []Undone) []Undone {
	all = slices.Clone(all)
	for i := range all {
		all[i].Configurations = slices.Clone(all[i].Configurations)
		all[i].Placements, all[i].Tries = slices.Clone(all[i].Placements), slices.Clone(all[i].Tries)
	}
	return all
}
