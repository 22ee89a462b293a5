// Soak runs the long forms of the tests that watch the product under stress, and prints one table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spokelet/spokelet/test/soak"
)

// options are the flags.
type options struct {
	duration, every        time.Duration
	seed                   uint64
	binaries, dir, samples string
	log                    io.Writer
}

// report holds what a soak found.
type report interface {
	Rows() [][2]string
	Check() error
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var o options
	only := flag.String("only", "", "the soak to run, rotation or rollouts; empty runs both, one after the other")
	flag.DurationVar(&o.duration, "duration", 10*time.Minute, "how long each soak runs")
	flag.DurationVar(&o.every, "every", soak.DefaultEvery, "how long after the begin of a rollout the next one begins")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "decides the disturbances; the table names it")
	flag.StringVar(&o.binaries, "binaries", "", "directory with our programs; empty is bin")
	flag.StringVar(&o.dir, "dir", "", "directory for logs and data, kept afterwards; empty is a temporary one")
	flag.StringVar(&o.samples, "samples", "", "file for what the programs use, every 15 seconds; empty is none")
	verbose := flag.Bool("v", false, "tell what happens")
	flag.Parse()
	if *verbose {
		o.log = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var all []error
	switch *only {
	case "rotation":
		all = append(all, rotation(ctx, o))
	case "rollouts":
		all = append(all, rollouts(ctx, o))
	case "":
		if all = append(all, rotation(ctx, o)); ctx.Err() == nil {
			all = append(all, rollouts(ctx, o))
		}
	default:
		return fmt.Errorf("there is no soak %q", *only)
	}
	return errors.Join(all...)
}

// below is a directory below the one of the flags, if they name one.
func (o options) below(name string) string {
	if o.dir == "" {
		return ""
	}
	return filepath.Join(o.dir, name)
}

func rotation(ctx context.Context, o options) error {
	found, err := soak.Rotation(ctx, soak.RotationOptions{
		Duration: o.duration, Seed: o.seed, Binaries: o.binaries, Dir: o.below("rotation"), Samples: o.samples, Log: o.log,
	})
	return errors.Join(err, write(fmt.Sprintf("rotation, seed %d", o.seed), o.duration, found))
}

func rollouts(ctx context.Context, o options) error {
	found, err := soak.Rollouts(ctx, soak.RolloutsOptions{
		Duration: o.duration, Every: o.every, Binaries: o.binaries, Dir: o.below("rollouts"), Samples: o.samples, Log: o.log,
	})
	return errors.Join(err, write(fmt.Sprintf("rollouts, every %s", o.every), o.duration, found))
}

// write prints a report as a table, and returns what it found wrong.
func write(head string, took time.Duration, found report) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\t%s\n", head, took)
	for _, row := range found.Rows() {
		fmt.Fprintf(table, "  %s\t%s\n", row[0], row[1])
	}
	return errors.Join(table.Flush(), found.Check())
}
