// Policies measures what the admission policies cost a write and prints one table; see package policies. It ends with
// an error only if it could not measure.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"

	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/bench/policies"
)

func main() { os.Exit(measure.Main(run)) }

func run(ctx context.Context) error {
	options := policies.DefaultOptions()
	flag.IntVar(&options.Rounds, "rounds", options.Rounds, "how often the policies are turned on and off")
	flag.IntVar(&options.Writes, "writes", options.Writes, "writes of each kind in a round, with and without policies")
	file := flag.String("json", "bin/bench-policies.json", "file for the figures; empty for none")
	verbose := flag.Bool("v", false, "log each figure")
	flag.Parse()
	log := io.Discard
	if *verbose {
		log = os.Stderr
	}
	figures, err := policies.Run(ctx, options, log)
	return errors.Join(err, measure.Write(os.Stdout, figures), measure.Save(*file, figures))
}
