// Report plays the short forms of all long tests and the benchmarks, and writes one report; see package report.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spokelet/spokelet/test/report"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "decides the edits and fleets; the report names it")
	runs := flag.Int("runs", 5, "how often each benchmark runs")
	only := flag.String("only", "", "play only parts whose title begins with it")
	page := flag.String("page", "docs/report.md", "file for the report")
	data := flag.String("data", "docs/report.json", "file for the same as JSON; what is there is the report before")
	assets := flag.String("assets", os.Getenv("KUBE_ASSETS"), "directory with the programs of a control plane")
	flag.Parse()
	last, err := read(*data)
	if err != nil {
		return err
	}
	now := &report.Report{Date: time.Now().UTC().Truncate(time.Second), Seed: *seed, Machine: report.Machine()}
	if now.Versions, err = report.Versions(ctx, *assets); err != nil {
		return err
	}
	if now.Commit, err = commit(ctx); err != nil {
		return err
	}
	parts := slices.DeleteFunc(report.Parts(*seed, *runs), func(p report.Part) bool {
		return !strings.HasPrefix(p.Title, *only)
	})
	failed := now.Play(ctx, parts, report.Run, time.Now, os.Stderr)
	if ctx.Err() != nil {
		return failed
	}
	return errors.Join(failed, write(*page, []byte(now.Markdown(last))), save(*data, now))
}

// commit returns the version of the code.
func commit(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "", fmt.Errorf("asking git for the commit: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// read reads a report; nil if there is none.
func read(file string) (*report.Report, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // none is an answer here
	}
	if err != nil {
		return nil, fmt.Errorf("reading the report before: %w", err)
	}
	r := &report.Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("reading the report before, %s: %w", file, err)
	}
	return r, nil
}

func save(file string, r *report.Report) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	return write(file, append(text, '\n'))
}

func write(file string, text []byte) error {
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
