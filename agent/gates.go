package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/component-base/featuregate"
)

// Gates are the feature gates of OCM's agents that change something here. DefaultGates returns the defaults.
type Gates struct {
	// ClusterClaim reports ClusterClaims; on by default.
	ClusterClaim bool
	// ClusterProperty reports ClusterProperties; off by default.
	ClusterProperty bool
	// AddonManagement gives add-ons credentials and tells their health; on by default.
	AddonManagement bool
	// MultipleHubs chooses among several hubs; off by default.
	MultipleHubs bool
	// RawFeedback lets feedback rules of works report lists, maps and fractions as JSON; off by default.
	RawFeedback bool
}

// DefaultGates returns the defaults of the contract.
func DefaultGates() Gates { return Gates{ClusterClaim: true, AddonManagement: true} }

// gate is one feature gate: value is what it turns, or why says why there is nothing to turn.
type gate struct {
	name  string
	stage string
	value *bool
	why   string
}

// alpha and beta are the stages of gates, by which AllAlpha and AllBeta select them.
const alpha, beta = "ALPHA", "BETA"

func (g *Gates) all() []gate {
	return []gate{
		{"AddonManagement", beta, &g.AddonManagement, ""},
		{"ClusterClaim", beta, &g.ClusterClaim, ""},
		{"ClusterProperty", alpha, &g.ClusterProperty, ""},
		{"ExecutorValidatingCaches", alpha, nil, "what an executor may do is always remembered"},
		{"MultipleHubs", alpha, &g.MultipleHubs, ""},
		{"RawFeedbackJsonString", alpha, &g.RawFeedback, ""},
		{"SIGPlacementDecision", alpha, nil, "the agent reads no placement decisions"},
		{"V1beta1CSRAPICompatibility", alpha, nil, "every supported API server has certificates.k8s.io/v1"},
	}
}

// gatesFlag sets Gates by --feature-gates, which may be repeated.
type gatesFlag struct {
	gates *Gates
	known featuregate.MutableFeatureGate
	// idle takes a gate that was given and has nothing to turn, and why.
	idle func(name, why string)
}

// newGatesFlag returns a flag whose defaults are the values in gates.
func newGatesFlag(gates *Gates, idle func(name, why string)) *gatesFlag {
	specs := map[featuregate.Feature]featuregate.FeatureSpec{}
	for _, gate := range gates.all() {
		spec := featuregate.FeatureSpec{PreRelease: featuregate.Alpha}
		if gate.stage == beta {
			spec.PreRelease = featuregate.Beta
		}
		if gate.value != nil {
			spec.Default = *gate.value
		}
		specs[featuregate.Feature(gate.name)] = spec
	}
	known := featuregate.NewFeatureGate()
	// It fails for a gate that is added twice, and these are the only ones.
	_ = known.Add(specs)
	return &gatesFlag{gates: gates, known: known, idle: idle}
}

// names returns the names of all gates that are accepted.
func (f *gatesFlag) names() []string {
	names := []string{"AllAlpha", "AllBeta"}
	for _, gate := range f.gates.all() {
		names = append(names, gate.name)
	}
	slices.Sort(names)
	return names
}

// String implements pflag.Value.
func (f *gatesFlag) String() string {
	if f.gates == nil {
		return ""
	}
	var parts []string
	for _, gate := range f.gates.all() {
		if gate.value != nil {
			parts = append(parts, gate.name+"="+strconv.FormatBool(*gate.value))
		}
	}
	return strings.Join(parts, ",")
}

// Set implements pflag.Value; a gate that was not given keeps its value.
func (f *gatesFlag) Set(text string) error {
	if err := f.known.Set(text); err != nil {
		return fmt.Errorf("%w; known are %s", err, strings.Join(f.names(), ", "))
	}
	for _, gate := range f.gates.all() {
		switch {
		case gate.value != nil:
			*gate.value = f.known.Enabled(featuregate.Feature(gate.name))
		case strings.Contains(text, gate.name+"="):
			f.idle("--feature-gates="+gate.name, gate.why)
		}
	}
	return nil
}

// Type implements pflag.Value.
func (*gatesFlag) Type() string { return "gates" }
