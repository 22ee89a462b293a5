package badcluster

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spokelet/spokelet/test/bench/measure"
)

// Times are how long repairs by the hub manager took, and bare writes beside them.
type Times struct{ Repair, Bare []time.Duration }

// Row holds what was measured with one misdeed.
type Row struct {
	Misdeed string
	// Rate is how often the agent misbehaved in a second.
	Rate float64
	// Alone are the times without the misdeed, and Beside those beside it.
	Alone, Beside Times
}

// Write prints the table. The error names the misdeeds that slow other clusters down by more than the factor.
func Write(out io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "misdeed\ta second\talone p50, p99\tbeside it p50, p99\tfactor\tof bare writes\t")
	var slow []error
	for _, r := range rows {
		mark := ""
		if err := r.check(); err != nil {
			slow, mark = append(slow, err), "missed"
		}
		fmt.Fprintf(table, "%s\t%.0f\t%s\t%s\t%s\t%s\t%s\n", r.Misdeed, r.Rate, pair(r.Alone.Repair), pair(r.Beside.Repair),
			factors(r.Alone.Repair, r.Beside.Repair), factors(r.Alone.Bare, r.Beside.Bare), mark)
	}
	return errors.Join(table.Flush(), errors.Join(slow...))
}

// check reports whether another cluster is slower by more than the factor and the noise, beyond what a bare write is.
func (r Row) check() error {
	for _, of := range []struct {
		share float64
		noise time.Duration
	}{{0.5, noise}, {0.99, noiseOfTail}} {
		alone, beside := measure.Percentile(r.Alone.Repair, of.share), measure.Percentile(r.Beside.Repair, of.share)
		server := max(1, factor(r.Alone.Bare, r.Beside.Bare, of.share))
		if limit := time.Duration(most*server*float64(alone)) + of.noise; beside > limit {
			return fmt.Errorf("beside %q, percentile %g of a change on another cluster is %s, and may be %s, as a bare write "+
				"takes %.1f times as long", r.Misdeed, of.share*100, rounded(beside), rounded(limit), server)
		}
	}
	return nil
}

func pair(took []time.Duration) string {
	return rounded(measure.Percentile(took, 0.5)) + ", " + rounded(measure.Percentile(took, 0.99))
}

// factor returns how many times longer a share of the times is.
func factor(alone, beside []time.Duration, share float64) float64 {
	return float64(measure.Percentile(beside, share)) / float64(max(measure.Percentile(alone, share), 1))
}

// factors says how many times longer the median and the 99th percentile are.
func factors(alone, beside []time.Duration) string {
	return fmt.Sprintf("%.1f, %.1f", factor(alone, beside, 0.5), factor(alone, beside, 0.99))
}

func rounded(d time.Duration) string { return d.Round(time.Millisecond).String() }
