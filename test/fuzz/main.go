// Command fuzz runs fuzz tests one after the other, each for a while, and stops at the first that fails. The tests are
// given as package:name, such as csr/approve:FuzzJudge.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct{ fuzzTime, timeout time.Duration }

func main() {
	var o options
	flag.DurationVar(&o.fuzzTime, "time", 10*time.Second, "how long each test runs")
	flag.DurationVar(&o.timeout, "timeout", 20*time.Minute, "how long a test may take beyond that, mostly to be compiled")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := all(ctx, o, flag.Args())
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// all runs the tests until one fails.
func all(ctx context.Context, o options, tests []string) error {
	for _, test := range tests {
		pkg, name, found := strings.Cut(test, ":")
		if !found {
			return fmt.Errorf("%s does not name a fuzz test: write package:name, such as csr/approve:FuzzJudge", test)
		}
		start := time.Now()
		out, err := once(ctx, o, pkg, name)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", test, err, out)
		}
		fmt.Printf("%s: %s, %s in all\n", test, summary(out), time.Since(start).Round(time.Second))
	}
	return nil
}

// once runs a test.
func once(ctx context.Context, o options, pkg, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, o.fuzzTime+o.timeout)
	defer cancel()
	// The unit tests vet the package. An input is not minimized for long, because that takes the time to find others.
	cmd := exec.CommandContext(ctx, "go", "test", "./"+pkg, "-vet", "off", "-run", "^$", "-fuzz", "^"+name+"$",
		"-fuzztime", o.fuzzTime.String(), "-fuzzminimizetime", "1s")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil && endedByTheClock(out) {
		err = nil
	}
	if err == nil && bytes.Contains(out, []byte("no fuzz tests to fuzz")) {
		err = fmt.Errorf("package %s has no fuzz test %s", pkg, name)
	}
	return out, err
}

// endedByTheClock reports whether the only failure of a test is that its time was over while an input was tried. Go
// 1.26 reports that now and then, most of all on a busy machine (https://go.dev/issue/75804). An input that fails is
// always written down.
func endedByTheClock(out []byte) bool {
	return regexp.MustCompile(`\n--- FAIL: \w+ \(\d+\.\d+s\)\n    context deadline exceeded\nFAIL\n`).Match(out) &&
		!bytes.Contains(out, []byte("Failing input written"))
}

// summary returns how many inputs were tried, in the words of Go.
func summary(out []byte) string {
	all := regexp.MustCompile(`execs: \d+`).FindAll(out, -1)
	if len(all) == 0 {
		return "no inputs"
	}
	return string(all[len(all)-1])
}
