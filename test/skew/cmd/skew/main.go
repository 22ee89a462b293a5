// Skew plays agents and hub managers of two versions together, and prints one table.
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
	"slices"
	"strings"
	"syscall"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
	"github.com/spokelet/spokelet/test/skew"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	base := flag.String("base", "", "the other version, a commit; empty is the newest one that is at least a week old, "+
		"else the oldest one that has what is needed")
	paths := flag.String("paths", "", "paths to walk, separated by commas; empty is all of them")
	binaries := flag.String("binaries", "", "directory with our programs; empty is bin")
	dir := flag.String("dir", "", "directory for logs and data, kept afterwards; empty is a temporary one")
	verbose := flag.Bool("v", false, "tell what happens")
	flag.Parse()
	walked, err := choose(*paths)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	options := skew.Options{Dir: *dir, Log: io.Discard}
	if *verbose {
		options.Log = os.Stderr
	}
	if options.New, err = fleet.Present(*binaries); err != nil {
		return err
	}
	built, err := os.MkdirTemp("", skew.DirPrefix)
	if err != nil {
		return fmt.Errorf("making a directory for the other version: %w", err)
	}
	janitor, err := sandbox.StartJanitor(built)
	if err != nil {
		return errors.Join(err, os.RemoveAll(built))
	}
	return errors.Join(play(ctx, *base, built, walked, options), janitor.Finish())
}

// choose returns the paths of those names.
func choose(list string) ([]skew.Path, error) {
	all := skew.Paths()
	if list == "" {
		return all, nil
	}
	var chosen []skew.Path
	for name := range strings.SplitSeq(list, ",") {
		at := slices.IndexFunc(all, func(p skew.Path) bool { return p.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no path %q", name)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}

// play builds the other version and walks the paths, each on control planes of its own.
func play(ctx context.Context, base, built string, paths []skew.Path, options skew.Options) error {
	root, err := sandbox.ModuleRoot()
	if err != nil {
		return err
	}
	repository := skew.Repository{Root: root}
	commit, err := repository.Base(ctx, base)
	if err != nil {
		return err
	}
	fmt.Printf("old is %s; new is this tree\n", commit)
	if options.Old, err = repository.Build(ctx, commit, filepath.Clean(built)); err != nil {
		return err
	}
	var reports []skew.Report
	var failed error
	for _, path := range paths {
		report, err := skew.Run(ctx, path, options)
		reports = append(reports, report)
		if err != nil {
			failed = fmt.Errorf("path %s: %w", path.Name, err)
			break
		}
	}
	return errors.Join(failed, skew.Write(os.Stdout, reports), skew.Check(reports))
}
