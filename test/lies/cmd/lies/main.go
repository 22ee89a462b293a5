// Lies plays what happens to a fleet whose API servers lie, from one seed after the other, and prints one table of what
// came of it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spokelet/spokelet/test/lies"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var o lies.Options
	seed := flag.Uint64("seed", uint64(time.Now().Unix()), "decides the first play; the table names it")
	seeds := flag.Int("seeds", 20, "how many plays there are, each with the next seed")
	flag.DurationVar(&o.Lasts, "lasts", 0, "play until this time, in which the last play begins; 0 plays all seeds once")
	flag.IntVar(&o.Clusters, "clusters", lies.DefaultClusters, "how many managed clusters there are")
	flag.IntVar(&o.Scenes, "scenes", lies.DefaultScenes, "how many scenes a play has")
	flag.BoolVar(&o.GoOn, "go-on", false, "play on after a violation")
	flag.StringVar(&o.Binaries, "binaries", "", "directory with our programs; empty is bin")
	flag.StringVar(&o.Dir, "dir", "", "directory for logs and data, kept afterwards; empty is a temporary one")
	flag.StringVar(&o.Samples, "samples", "", "file for what the programs use, every 15 seconds; empty is none")
	kept := flag.Bool("kept", false, "play the seeds that once found something before the others")
	these := flag.String("these", "", "seeds to play in the place of others, separated by commas")
	verbose := flag.Bool("v", false, "tell every scene")
	flag.Parse()
	if *kept {
		o.Seeds = append(o.Seeds, lies.Kept()...)
	}
	for i := range *seeds {
		o.Seeds = append(o.Seeds, *seed+uint64(i))
	}
	if *these != "" {
		o.Seeds = nil
		for text := range strings.SplitSeq(*these, ",") {
			one, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return fmt.Errorf("reading -these: %w", err)
			}
			o.Seeds = append(o.Seeds, one)
		}
	}
	if *verbose {
		o.Log = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var table lies.Table
	fmt.Println(table.Head())
	o.Each = func(one lies.Outcome) { fmt.Println(table.Line(one)) }
	_, err := lies.Run(ctx, o)
	fmt.Println(table.Foot())
	return errors.Join(err, table.Check())
}
