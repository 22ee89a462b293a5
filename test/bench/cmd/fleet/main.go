// Fleet measures the hub manager with fleets of several sizes and prints one table; see manager.Grow. It ends with an
// error only if it could not measure.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"strings"

	"github.com/spokelet/spokelet/test/bench/manager"
	"github.com/spokelet/spokelet/test/bench/measure"
)

func main() { os.Exit(measure.Main(run)) }

func run(ctx context.Context) error {
	options := manager.DefaultOptions()
	options.Lean, options.Restart, options.Hooks, options.Windows = true, true, true, true
	options.Rounds, options.Wave = 0, 0
	sizes := flag.String("sizes", "100x1,500x1,1000x1,3000x1,100x20,3000x20",
		"clusters and add-ons on each, one fleet after the other; 500x1+4 adds four more to the clusters of 500x1; "+
			"changes and deletions are compared with the first")
	flag.DurationVar(&options.Idle, "idle", options.Idle, "how long the hub manager is left alone")
	options.Changes = 300
	flag.IntVar(&options.Changes, "changes", options.Changes, "changes of one add-on on one cluster")
	flag.IntVar(&options.Wave, "wave", options.Wave, "clusters in a wave of a progressive upgrade; 0 leaves it out")
	flag.DurationVar(&options.Heartbeat, "heartbeat", options.Heartbeat,
		"how often each simulated cluster renews its lease; 0 means never")
	flag.BoolVar(&options.LeasesApart, "leases-apart", false, "give the leases of the hub an etcd of their own")
	flag.StringVar(&options.Keep, "keep", "",
		"new directory for the stores of the hub of the last size once all clusters have joined")
	flag.StringVar(&options.From, "from", "",
		"directory of an earlier -keep for the last size, where nobody has to join then")
	only := flag.String("only", "", "steps beside joining, with commas: "+
		"install, idle, windows, change, restart, waves, upgrade, uninstall, hooks, floor; empty means all")
	file := flag.String("json", "bin/bench-fleet.json", "file for the figures; empty for none")
	flag.StringVar(&options.Binaries, "binaries", "", "directory with spokelet-hub; empty is bin")
	flag.StringVar(&options.Profiles, "profiles", "", "directory for profiles of the hub manager; empty for none")
	quiet := flag.Bool("q", false, "log no steps")
	flag.Parse()
	if *only != "" {
		options.Only = strings.Split(*only, ",")
	}
	var log io.Writer = os.Stderr
	if *quiet {
		log = io.Discard
	}
	all, err := manager.ParseSizes(*sizes)
	if err != nil {
		return err
	}
	figures, err := manager.Grow(ctx, options, all, log)
	return errors.Join(err, measure.Write(os.Stdout, figures), measure.Save(*file, figures))
}
