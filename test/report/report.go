package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Part is a command and how often it runs.
type Part struct {
	// Title says what the part shows.
	Title string `json:"title"`
	// Command is the command with its arguments.
	Command []string `json:"command"`
	// Runs is how often it runs; figures are compared where that is more than once.
	Runs int `json:"runs"`
}

// Parts returns the parts of a report, with a seed for those that have one.
func Parts(seed uint64, runs int) []Part {
	s := fmt.Sprintf("-seed %d", seed)
	part := func(title, target, variable, flags string, runs int) Part {
		return Part{Title: title, Command: []string{"make", target, variable + "=" + flags}, Runs: runs}
	}
	return []Part{
		part("Games: decisions of the hub manager about generated fleets", "fleets", "FLEETS_FLAGS", s+" -fleets 5000", 1),
		part("A day of a fleet, in virtual time", "day", "DAY_FLAGS", s, 1),
		part("A day of works that people write, in virtual time", "works", "WORKS_FLAGS", s, 1),
		part("Ways: one state by other routes, and by lies", "ways", "WAYS_FLAGS", "-ways 30", 1),
		part("Storm: random edits of a hub and a cluster", "storm", "STORM_FLAGS", s+" -edits 400", 1),
		part("The same behind API servers that lie", "storm", "STORM_FLAGS", s+" -lies -edits 200 -calm 20", 1),
		part("Lies: a fleet whose API servers lie", "lies", "LIES_FLAGS", s+" -seeds 5", 1),
		part("Soak: certificates of a minute, and a rollout every minute", "soak", "SOAK_FLAGS", s+" -duration 2m", 1),
		part("Skew: an older version beside this one, an upgrade and the way back", "skew", "SKEW_FLAGS", "", 1),
		part("Two bugs that were put back", "bugs", "BUGS_FLAGS",
			"-only b03 -programs works,day -json bin/bugs-report.json -write=", 1),
		part("The agent", "bench-agent", "BENCH_FLAGS", "-works 50 -changes 50 -idle 10s", runs),
		part("The hub manager", "bench-hub", "BENCH_HUB_FLAGS", "-size 100x1", runs),
	}
}

// Report holds what was seen.
type Report struct {
	// Date is when it began.
	Date time.Time `json:"date"`
	// Commit is the version of our code, with the mark "-dirty" where files were changed.
	Commit string `json:"commit"`
	// Machine and Versions are what it ran on, by name.
	Machine  []Row `json:"machine"`
	Versions []Row `json:"versions"`
	// Seed is that of all parts that have one.
	Seed uint64 `json:"seed"`
	// Parts are the results, in their order.
	Parts []Result `json:"parts"`
}

// Row is one line of a table.
type Row struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Result holds what came of a part.
type Result struct {
	Part
	// Seconds is how long all runs took.
	Seconds float64 `json:"seconds"`
	// Failed is the end of the output of a run that failed; empty if none did.
	Failed string `json:"failed,omitempty"`
	// Tables are the rows of each run.
	Tables [][]Row `json:"tables"`
}

// Runner runs a command and returns what it printed.
type Runner func(ctx context.Context, command []string) (string, error)

// Play runs the parts, and tells the log which. A part that fails does not keep the others from running; the error says
// that there was one. Only the end of the context ends a report early.
func (r *Report) Play(ctx context.Context, parts []Part, run Runner, now func() time.Time, log io.Writer) error {
	var failed []error
	for _, part := range parts {
		result := Result{Part: part}
		began := now()
		for n := range part.Runs {
			fmt.Fprintf(log, "%s (%d of %d)\n", part.Title, n+1, part.Runs)
			out, err := run(ctx, part.Command)
			if ctx.Err() != nil {
				return fmt.Errorf("playing %q: %w", part.Title, context.Cause(ctx))
			}
			result.Tables = append(result.Tables, Rows(out))
			if err != nil {
				result.Failed = end(out)
				failed = append(failed, fmt.Errorf("%s: %w", part.Title, err))
				break
			}
		}
		result.Seconds = now().Sub(began).Seconds()
		r.Parts = append(r.Parts, result)
	}
	return errors.Join(failed...)
}
