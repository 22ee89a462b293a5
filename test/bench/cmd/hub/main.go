// Hub measures the hub manager and prints one table; see package manager. It ends with an error only if it could not
// measure.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"

	"github.com/spokelet/spokelet/test/bench/manager"
	"github.com/spokelet/spokelet/test/bench/measure"
)

func main() { os.Exit(measure.Main(run)) }

func run(ctx context.Context) error {
	options := manager.DefaultOptions()
	size := flag.String("size", options.Size.String(), "clusters and add-ons on each")
	flag.DurationVar(&options.Idle, "idle", options.Idle, "how long the hub manager is left alone")
	flag.IntVar(&options.Changes, "changes", options.Changes, "changes of one add-on on one cluster; 0 leaves them out")
	flag.IntVar(&options.Rounds, "rounds", options.Rounds,
		"installations of one add-on on one cluster with a real agent; 0 leaves them out")
	flag.BoolVar(&options.Chart, "chart", options.Chart, "measure the sample add-on with a chart in its author's program")
	flag.IntVar(&options.Wave, "wave", options.Wave, "clusters in a wave of a progressive upgrade; 0 leaves it out")
	flag.BoolVar(&options.Restart, "restart", options.Restart,
		"measure the start of the hub manager with all add-ons in place")
	flag.BoolVar(&options.Lean, "lean", options.Lean, "run the API server as for the large fleets")
	flag.DurationVar(&options.Heartbeat, "heartbeat", options.Heartbeat,
		"how often each simulated cluster renews its lease; 0 means never")
	file := flag.String("json", "bin/bench-hub.json", "file for the figures; empty for none")
	flag.StringVar(&options.Binaries, "binaries", "", "directory with spokelet and spokelet-hub; empty is bin")
	flag.StringVar(&options.Profiles, "profiles", "", "directory for profiles of the hub manager; empty for none")
	verbose := flag.Bool("v", false, "log each step")
	flag.Parse()
	log := io.Discard
	if *verbose {
		log = os.Stderr
	}
	var err error
	if options.Size, err = manager.ParseSize(*size); err != nil {
		return err
	}
	figures, err := manager.Run(ctx, options, log)
	return errors.Join(err, measure.Write(os.Stdout, figures), measure.Save(*file, figures))
}
