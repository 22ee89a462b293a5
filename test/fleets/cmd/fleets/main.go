// Fleets plays generated fleets against the decisions of the hub manager, and prints one table of what it found.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/test/fleets"
	"github.com/spokelet/spokelet/test/fleets/timed"
)

// properties are the rows of the table.
var properties = []fleets.Property{
	fleets.Rollout(planner.Make),
	fleets.Install(fleet.NewDecisions),
	fleets.Upgrade(fleets.Senses{}),
	timed.Policies(timed.Bend{}),
	timed.Undo(timed.Bend{}),
	timed.Order(timed.OrderBend{}),
}

func main() {
	// A game keeps nothing, so the collector would run all the time for a heap of a few megabytes.
	debug.SetGCPercent(1000)
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var o fleets.Options
	flag.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano()), "decides the fleets; the table names it")
	flag.IntVar(&o.Games, "fleets", 1_000_000, "how many fleets are played for each row")
	flag.IntVar(&o.First, "first", 0, "number of the first fleet; with -fleets 1 it plays one fleet again")
	flag.IntVar(&o.Workers, "workers", runtime.NumCPU(), "fleets that are played at the same time")
	only := flag.String("row", "", "play for one row: rollout, install, upgrade, policies, undo or order; empty for all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	tallies := make([]fleets.Tally, 0, len(properties))
	for _, p := range properties {
		if *only != "" && *only != p.Name {
			continue
		}
		tallies = append(tallies, fleets.Run(ctx, p, o))
	}
	if len(tallies) == 0 {
		return fmt.Errorf("there is no row %q", *only)
	}
	err := fleets.Print(os.Stdout, o.Seed, tallies)
	if fleets.Violated(tallies) {
		err = errors.Join(err, errors.New("a property does not hold for every fleet"))
	}
	return err
}
