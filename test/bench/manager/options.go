package manager

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Options are the parts of a benchmark.
type Options struct {
	// Size is the size of the fleet.
	Size Size
	// Idle is how long the hub manager is left alone; zero leaves that out.
	Idle time.Duration
	// Changes is how many add-ons are changed one after the other; zero leaves that out.
	Changes int
	// Rounds is how often one add-on is installed on one real cluster; zero leaves that out.
	Rounds int
	// Chart measures the sample add-on with a Helm chart, in the program of its author.
	Chart bool
	// Wave is the number of clusters in a wave of the progressive upgrade; zero leaves that out.
	Wave int
	// Restart measures the start of the hub manager with all add-ons in place.
	Restart bool
	// Hooks measures the deletion of all add-ons with a pre-delete hook on each cluster.
	Hooks bool
	// Windows measures a maintenance window for each cluster.
	Windows bool
	// Only names the steps that are played beside joining, of those that the other options ask for: install, idle,
	// windows, change, restart, waves, upgrade, uninstall, hooks and floor. Empty means all.
	Only []string
	// Lean runs the API server of the hub without what a large fleet on a small machine cannot afford, see lean.
	Lean bool
	// LeasesApart gives leases an etcd of their own, as in sandbox.Options.
	LeasesApart bool
	// Keep is a directory that gets the stores of the hub when all clusters have joined, and From one that got them from
	// an earlier run with the same number of clusters, which need not join then. Of several sizes, both are for the last.
	Keep, From string
	// Heartbeat is how often each cluster renews its lease; zero means never.
	Heartbeat time.Duration
	// Binaries is the directory with our programs, as in fleet.Options.
	Binaries string
	// Profiles is a directory for profiles of the hub manager, of its processor time in each step and of its memory at the
	// end of each; empty asks for none. The other figures of such a run are not to be used.
	Profiles string
}

// DefaultOptions are those of the budgets of the design.
func DefaultOptions() Options {
	return Options{Size: budgeted(), Idle: time.Minute, Changes: 50, Rounds: 30, Wave: 25, Chart: true}
}

// budgeted is the size for which the design has budgets of time.
func budgeted() Size { return Size{Clusters: 500, AddOns: 1} }

// goal holds what the hub manager may need at a size.
type goal struct {
	// rest is its memory at rest, in MiB.
	rest float64
	// start is the time from its start until it is quiet.
	start time.Duration
}

// peak is the memory that it may need at most.
func (g goal) peak() float64 { return 2 * g.rest }

// large returns what the hub manager may need at the sizes that are the goal of the design, and nothing for others.
func large(s Size) goal {
	return map[Size]goal{
		{Clusters: 3000, AddOns: 20}: {rest: 400, start: time.Minute},
		{Clusters: 10000, AddOns: 5}: {rest: 1229, start: time.Minute},
	}[s]
}

// Size is the size of a fleet.
type Size struct {
	// Clusters is the number of clusters, and AddOns the number of add-ons on each of them.
	Clusters, AddOns int
	// More is the number of add-ons that each cluster gets later, when the fleet was measured without them.
	More int
}

// String returns the size as it is now, without what the clusters get later.
func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Clusters, s.AddOns) }

// grown is the size with what the clusters get later.
func (s Size) grown() Size { return Size{Clusters: s.Clusters, AddOns: s.AddOns + s.More} }

// all is the number of ManagedClusterAddOns.
func (s Size) all() int { return s.Clusters * s.AddOns }

// ParseSize reads a size such as 500x1, or 500x1+4 for a fleet that gets four further add-ons later.
func ParseSize(text string) (Size, error) {
	clusters, rest, found := strings.Cut(text, "x")
	addOns, more, grows := strings.Cut(rest, "+")
	var s Size
	var err error
	if s.Clusters, err = strconv.Atoi(clusters); found && err == nil {
		s.AddOns, err = strconv.Atoi(addOns)
	}
	if grows && err == nil {
		s.More, err = strconv.Atoi(more)
	}
	if err != nil || s.Clusters < 1 || s.AddOns < 1 || grows && s.More < 1 {
		return Size{}, fmt.Errorf("%q is not a size: clusters and add-ons on each, such as 500x1 or 500x1+4", text)
	}
	return s, nil
}

// ParseSizes reads sizes with commas between them.
func ParseSizes(text string) ([]Size, error) {
	var sizes []Size
	for one := range strings.SplitSeq(text, ",") {
		size, err := ParseSize(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

// patience is how long a step may take. Each request makes the API server look at the bindings of all clusters
// (docs/operations/large-fleets.md), so what the clusters take together grows with the square of their number.
func (s Size) patience() time.Duration {
	each := 100*time.Millisecond + time.Duration(s.Clusters)*20*time.Microsecond
	return 5*time.Minute + time.Duration(s.all())*each
}
