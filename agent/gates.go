package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Gates are the feature gates of the contract (registration 4.8) that change something here; as a flag value they read
// name=true,name=false. DefaultGates returns the defaults. Gates that have nothing to turn here are accepted.
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

// gate is one feature gate by its name; value is nil where there is nothing to turn.
type gate struct {
	name  string
	value *bool
}

func (g *Gates) all() []gate {
	return []gate{
		{"AddonManagement", &g.AddonManagement},
		{"ClusterClaim", &g.ClusterClaim},
		{"ClusterProperty", &g.ClusterProperty},
		// Access reviews of executors: the work reconciler decides by itself whether it keeps them.
		{"ExecutorValidatingCaches", nil},
		{"MultipleHubs", &g.MultipleHubs},
		{"RawFeedbackJsonString", &g.RawFeedback},
		// No server that we support lacks certificates.k8s.io/v1.
		{"V1beta1CSRAPICompatibility", nil},
	}
}

// gateNames returns the names of all gates that are accepted.
func gateNames() []string {
	var names []string
	for _, known := range (&Gates{}).all() {
		names = append(names, known.name)
	}
	return names
}

// String implements pflag.Value.
func (g *Gates) String() string {
	var parts []string
	for _, known := range g.all() {
		if known.value != nil {
			parts = append(parts, known.name+"="+strconv.FormatBool(*known.value))
		}
	}
	return strings.Join(parts, ",")
}

// Set implements pflag.Value; what it does not name stays as it is.
func (g *Gates) Set(text string) error {
	known := g.all()
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		if !found || err != nil {
			return fmt.Errorf("%q is not of the form name=true or name=false", part)
		}
		name = strings.TrimSpace(name)
		at := slices.IndexFunc(known, func(k gate) bool { return k.name == name })
		if at < 0 {
			return fmt.Errorf("unknown feature gate %q, known are %s", name, strings.Join(gateNames(), ", "))
		}
		if known[at].value != nil {
			*known[at].value = on
		}
	}
	return nil
}

// Type implements pflag.Value.
func (*Gates) Type() string { return "gates" }
