// Storm edits a hub and its managed cluster at random, and prints one table of what came of it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spokelet/spokelet/test/storm"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var o storm.Options
	flag.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano()), "decides the edits; the table names it")
	flag.IntVar(&o.Edits, "edits", 0,
		fmt.Sprintf("how many edits there are; 0 is %d, or all that -lasts has time for", storm.DefaultEdits))
	flag.DurationVar(&o.Lasts, "lasts", 0, "end with the calm after this time; 0 is after all edits")
	flag.IntVar(&o.Calm, "calm", storm.DefaultCalm, "how many edits are between two looks at everything, and new lies")
	flag.StringVar(&o.Binaries, "binaries", "", "directory with our programs; empty is bin")
	flag.StringVar(&o.Dir, "dir", "", "directory for logs and data, kept afterwards; empty is a temporary one")
	flag.StringVar(&o.Samples, "samples", "", "file for what the programs use, every 15 seconds; empty is none")
	flag.DurationVar(&o.Patience, "patience", storm.DefaultPatience, "how long all may take to agree")
	flag.BoolVar(&o.Lies, "lies", false, "put a proxy that lies before each API server")
	verbose := flag.Bool("v", false, "tell every edit")
	flag.Parse()
	if *verbose {
		o.Log = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := storm.Run(ctx, o)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "storm, seed %d\t%s\n", o.Seed, report.Took.Round(time.Second))
	for _, row := range report.Rows() {
		fmt.Fprintf(table, "  %s\t%s\n", row[0], row[1])
	}
	return errors.Join(err, table.Flush(), report.Check())
}
