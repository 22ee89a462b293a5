// Soak runs the long forms of the tests that watch the product under stress, and prints one table.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spokelet/spokelet/test/soak"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	duration := flag.Duration("duration", 10*time.Minute, "how long each soak runs")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "decides the disturbances; the table names it")
	verbose := flag.Bool("v", false, "tell what happens")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return rotate(ctx, *duration, *seed, *verbose)
}

func rotate(ctx context.Context, duration time.Duration, seed uint64, verbose bool) error {
	options := soak.RotationOptions{Duration: duration, Seed: seed}
	if verbose {
		options.Log = os.Stderr
	}
	report, err := soak.Rotation(ctx, options)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "rotation, seed %d\t%s\n", seed, duration)
	for _, row := range report.Rows() {
		fmt.Fprintf(table, "  %s\t%s\n", row[0], row[1])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return report.Check()
}
