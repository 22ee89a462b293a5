// Bugs puts bugs back, one at a time, and prints which program notices each.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spokelet/spokelet/test/bugs"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	list := flag.String("list", "test/bugs/list", "directory with the bugs")
	only := flag.String("only", ".", "regular expression of the names of bugs to play")
	play := flag.String("programs", "", "programs to play, separated by commas; empty means those that each bug names")
	all := flag.Bool("all", false, "play further programs after one noticed the bug")
	kept := flag.String("json", "docs/bugs.json", "file with the outcomes; those of bugs that are not played stay")
	page := flag.String("write", "docs/bugs.md", "file that receives the page with all outcomes; empty for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("reading -only: %w", err)
	}
	known, err := bugs.Read(*list)
	if err != nil {
		return err
	}
	root, err := filepath.Abs(".")
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
	}
	outcomes, err := load(*kept, known)
	if err != nil {
		return err
	}
	var failed []error
	for _, bug := range known {
		if !pattern.MatchString(bug.Name) {
			continue
		}
		programs, err := chosen(*play, bug)
		if err != nil {
			return err
		}
		now, err := bugs.Play(ctx, root, bug, programs, *all)
		failed = append(failed, err)
		for _, o := range now {
			fmt.Printf("%-28s %-6s noticed %-5t %6.0fs  %s\n", o.Bug.Name, o.Program, o.Noticed, o.Took.Seconds(), o.Said)
			outcomes = slices.DeleteFunc(outcomes, func(before bugs.Outcome) bool {
				return before.Bug.Name == o.Bug.Name && before.Program == o.Program
			})
			outcomes = append(outcomes, o)
		}
		if err := save(*kept, outcomes); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
	}
	tally := bugs.Count(outcomes)
	fmt.Printf("%d bugs: %d noticed by a fleet or a proxy, %d only by other tests\n", tally.All, tally.Fleet, tally.Other)
	if *page != "" {
		failed = append(failed, writePage(*page, outcomes))
	}
	return errors.Join(failed...)
}

// chosen returns the programs to play with a bug.
func chosen(names string, bug bugs.Bug) ([]bugs.Program, error) {
	wanted := bug.Play
	if names != "" {
		wanted = strings.Split(names, ",")
	}
	var programs []bugs.Program
	for _, name := range wanted {
		program, err := bugs.ProgramOf(name)
		if err != nil {
			return nil, fmt.Errorf("bug %s: %w", bug.Name, err)
		}
		programs = append(programs, program)
	}
	return programs, nil
}

// load reads outcomes of bugs that are still known; none when there is no file.
func load(path string, known []bugs.Bug) ([]bugs.Outcome, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading outcomes: %w", err)
	}
	var read, outcomes []bugs.Outcome
	if err := json.Unmarshal(content, &read); err != nil {
		return nil, fmt.Errorf("reading outcomes in %s: %w", path, err)
	}
	for _, o := range read {
		i := slices.IndexFunc(known, func(bug bugs.Bug) bool { return bug.Name == o.Bug.Name })
		if i >= 0 {
			o.Bug = known[i]
			outcomes = append(outcomes, o)
		}
	}
	return outcomes, nil
}

// save writes outcomes.
func save(path string, outcomes []bugs.Outcome) error {
	slices.SortStableFunc(outcomes, func(a, b bugs.Outcome) int { return cmp.Compare(a.Bug.Name, b.Bug.Name) })
	content, err := json.MarshalIndent(outcomes, "", " ")
	if err != nil {
		return fmt.Errorf("encoding outcomes: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making a directory for outcomes: %w", err)
	}
	return os.WriteFile(path, append(content, '\n'), 0o600)
}

// writePage writes the page with outcomes.
func writePage(path string, outcomes []bugs.Outcome) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return bugs.Write(file, outcomes)
}
