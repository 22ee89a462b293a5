// Bench measures the agent and prints one table; see package bench.
package main

import (
	"context"
	"errors"
	"flag"
	"os"

	"github.com/spokelet/spokelet/test/bench"
	"github.com/spokelet/spokelet/test/bench/measure"
)

func main() { os.Exit(measure.Main(run)) }

func run(ctx context.Context) error {
	options := bench.DefaultOptions()
	flag.IntVar(&options.Works, "works", options.Works, "number of works")
	flag.IntVar(&options.Objects, "objects", options.Objects, "number of objects per work")
	flag.IntVar(&options.Changes, "changes", options.Changes, "number of changes and disturbances")
	flag.DurationVar(&options.Idle, "idle", options.Idle, "how long the agent is left alone")
	file := flag.String("json", "bin/bench.json", "file for the figures; empty for none")
	flag.StringVar(&options.Binaries, "binaries", "", "directory with spokelet and spokelet-hub; empty is bin")
	flag.StringVar(&options.Profiles, "profiles", "", "directory for profiles of the API servers; empty for none")
	verbose := flag.Bool("v", false, "tell what happens")
	flag.Parse()
	if *verbose {
		options.Log = os.Stderr
	}
	figures, err := bench.Run(ctx, options)
	return errors.Join(err, measure.Write(os.Stdout, figures), measure.Save(*file, figures))
}
