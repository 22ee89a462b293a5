// Badcluster measures what other clusters notice when the agent of one cluster misbehaves, and prints one table; see
// package badcluster. It ends with an error if it could not measure, or if the hub manager becomes more than twice as
// slow for another cluster as the API server explains.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"

	"github.com/spokelet/spokelet/test/bench/badcluster"
	"github.com/spokelet/spokelet/test/bench/measure"
)

func main() { os.Exit(measure.Main(run)) }

func run(ctx context.Context) error {
	options := badcluster.DefaultOptions()
	flag.IntVar(&options.Changes, "changes", options.Changes, "changes of other clusters with each misdeed, and without")
	flag.IntVar(&options.Others, "others", options.Others, "other clusters")
	flag.Float64Var(&options.Rate, "rate", options.Rate, "how often the agent misbehaves in a second")
	flag.IntVar(&options.Senders, "senders", options.Senders, "requests of the agent at the same time")
	flag.StringVar(&options.Binaries, "binaries", "", "directory with spokelet-hub; empty is bin")
	verbose := flag.Bool("v", false, "log each step")
	flag.Parse()
	log := io.Discard
	if *verbose {
		log = os.Stderr
	}
	rows, err := badcluster.Run(ctx, options, log)
	return errors.Join(err, badcluster.Write(os.Stdout, rows))
}
