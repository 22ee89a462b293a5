// Bench measures the agent and prints one table; see package bench.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"github.com/spokelet/spokelet/test/bench"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	figures, err := bench.Run(ctx, options)
	return errors.Join(err, write(os.Stdout, figures), save(*file, figures))
}

// write prints the table. A budget that is missed is marked, and no error: the machine may be to blame.
func write(out io.Writer, figures []bench.Figure) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "figure\tmeasured\tbudget\t")
	for _, f := range figures {
		mark := ""
		if !f.Held {
			mark = "missed"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.Name, f.Value, f.Budget, mark)
	}
	return table.Flush()
}

func save(file string, figures []bench.Figure) error {
	if file == "" {
		return nil
	}
	raw, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(raw, '\n'), 0o644)
}
