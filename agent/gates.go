package agent

import "github.com/spokelet/spokelet/internal/command"

// Gates are the feature gates of OCM's agents that change something here. DefaultGates returns the defaults.
type Gates struct {
	// ClusterClaim reports ClusterClaims; on by default.
	ClusterClaim bool
	// ClusterProperty reports ClusterProperties; off by default.
	ClusterProperty bool
	// AddonManagement gives add-ons credentials and reports their health; on by default.
	AddonManagement bool
	// MultipleHubs selects one of several hubs; off by default.
	MultipleHubs bool
	// RawFeedback lets feedback rules of works report lists, maps and fractions as JSON; off by default.
	RawFeedback bool
	// ApplyLatency writes a line to the standard output when a generation of a work is applied; off by default.
	ApplyLatency bool
}

// DefaultGates returns the defaults of OCM.
func DefaultGates() Gates { return Gates{ClusterClaim: true, AddonManagement: true} }

// known returns all feature gates of OCM's agents.
func (g *Gates) known() map[string]command.Gate {
	return map[string]command.Gate{
		"AddonManagement": {Stage: command.Beta, Value: &g.AddonManagement},
		"ClusterClaim":    {Stage: command.Beta, Value: &g.ClusterClaim},
		"ClusterProperty": {Stage: command.Alpha, Value: &g.ClusterProperty},
		"ExecutorValidatingCaches": {
			Stage: command.Alpha, On: true, Reason: "what an executor may do is always cached",
		},
		"ManifestWorkApplyLatency":   {Stage: command.Alpha, Value: &g.ApplyLatency},
		"MultipleHubs":               {Stage: command.Alpha, Value: &g.MultipleHubs},
		"RawFeedbackJsonString":      {Stage: command.Alpha, Value: &g.RawFeedback},
		"SIGPlacementDecision":       {Stage: command.Alpha, Reason: "the agent reads no placement decisions"},
		"V1beta1CSRAPICompatibility": {Stage: command.Alpha, Reason: "every supported API server has certificates.k8s.io/v1"},
	}
}
