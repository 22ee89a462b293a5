// Mutate changes one operator at a time in the files that decide, and prints one table of how many changes the unit
// tests notice. With -survivors it lists the others.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spokelet/spokelet/test/mutate"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	o := mutate.Options{Dir: "."}
	flag.StringVar(&o.Tool, "tool", "bin/gremlins", "program that changes operators")
	flag.IntVar(&o.Workers, "workers", runtime.NumCPU(), "changes that are tested at the same time")
	packages := flag.String("packages", "", "folders of packages, separated by commas")
	least := flag.Float64("least", 0, "fail when fewer percent of the changes are noticed in a package")
	survivors := flag.Bool("survivors", true, "list the changes that no test notices")
	verbose := flag.Bool("v", false, "show the output of the tool")
	flag.Parse()
	o.Packages = strings.FieldsFunc(*packages, func(r rune) bool { return r == ',' || r == ' ' })
	if len(o.Packages) == 0 {
		return errors.New("-packages names no package")
	}
	if *verbose {
		o.Log = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	began := time.Now()
	results, err := mutate.Run(ctx, o)
	failed := []error{err}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "operators changed\tnoticed\tof\tshare (%s)\n", time.Since(began).Round(time.Second))
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%d\t%d\t%.0f %%\n", r.Package, r.Noticed, r.All, r.Share())
		if r.Share() < *least {
			failed = append(failed, fmt.Errorf("tests of %s notice %.1f %% of the changes, and %g are the least",
				r.Package, r.Share(), *least))
		}
	}
	failed = append(failed, table.Flush())
	if *survivors {
		for _, r := range results {
			for _, survivor := range r.Survivors {
				fmt.Println(survivor)
			}
		}
	}
	return errors.Join(failed...)
}
