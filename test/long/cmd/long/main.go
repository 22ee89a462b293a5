// Long plays the long tests beside each other, and prints one table of what they found and of what their programs used.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spokelet/spokelet/test/long"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	o := long.Options{Limits: long.DefaultLimits(), Log: os.Stderr}
	flag.DurationVar(&o.Lasts, "lasts", time.Hour, "how long each of them goes on")
	flag.Uint64Var(&o.Seed, "seed", uint64(time.Now().Unix()), "decides storm, lies and rotation; the table names it")
	only := flag.String("only", "", "those to play, separated by commas: storm, lies, rotation, rollouts; empty plays all")
	flag.StringVar(&o.Binaries, "binaries", "", "directory with our programs; empty is bin")
	flag.StringVar(&o.Dir, "dir", "", "directory for logs and samples; empty is a new one, which is told and kept")
	flag.DurationVar(&o.Limits.WarmUp, "warm-up", o.Limits.WarmUp, "how much of the begin of a life is not judged")
	flag.DurationVar(&o.Limits.Life, "life", o.Limits.Life, "how long it must live after that to be judged")
	flag.Parse()
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "spokelet-long-")
		if err != nil {
			return fmt.Errorf("making a directory: %w", err)
		}
		o.Dir = dir
	}
	fmt.Fprintf(os.Stderr, "logs and samples: %s\n", o.Dir)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	outcomes, err := long.Run(ctx, o)
	if ctx.Err() != nil {
		return err // what was broken off says nothing
	}
	return errors.Join(err, long.Write(os.Stdout, outcomes), long.Check(outcomes))
}
