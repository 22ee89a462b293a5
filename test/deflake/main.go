// Command deflake repeats the tests of a package under load and stops at the first failure, whose log it prints. Each
// run differs: in the order of the tests, in how many of them run in parallel, and in the number of processors that
// the test may use. The burners of the load leave the rest of the machine little time.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	pkg, run       string
	count, burners int
	timeout        time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.pkg, "pkg", "", "the package, such as ./test/integration/work")
	flag.StringVar(&o.run, "run", ".", "which tests, as in go test -run")
	flag.IntVar(&o.count, "count", 20, "how many runs")
	flag.IntVar(&o.burners, "burners", 2*runtime.NumCPU(), "how many loops burn processor time")
	flag.DurationVar(&o.timeout, "timeout", 20*time.Minute, "how long one run may take")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := repeat(ctx, o)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// repeat runs the tests until one fails.
func repeat(ctx context.Context, o options) error {
	if o.pkg == "" {
		return fmt.Errorf("which package? make deflake PKG=./test/integration/work [RUN=TestCost] [COUNT=20]")
	}
	dir, err := os.MkdirTemp("", "spokelet-deflake-")
	if err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "package.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, o.pkg)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the tests of %s: %w\n%s", o.pkg, err, out)
	}
	for range o.burners {
		go burn(ctx)
	}
	for i := range o.count {
		if err := once(ctx, o, binary, i); err != nil {
			return err
		}
	}
	fmt.Printf("%d runs, none failed\n", o.count)
	return nil
}

// once runs the tests once; the number of the run decides how.
func once(ctx context.Context, o options, binary string, number int) error {
	cpus, parallel := 1+number%2, 1<<(number%4)
	cmd := exec.CommandContext(ctx, binary, "-test.v", "-test.failfast", "-test.run="+o.run,
		"-test.shuffle="+strconv.Itoa(number+1), "-test.parallel="+strconv.Itoa(parallel),
		"-test.timeout="+o.timeout.String())
	cmd.Dir = o.pkg
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(cpus))
	// The test ends its control planes when it is asked to end.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	started := time.Now()
	out, err := cmd.CombinedOutput()
	how := fmt.Sprintf("run %d (order %d, %d in parallel, GOMAXPROCS %d): %s",
		number+1, number+1, parallel, cpus, time.Since(started).Round(100*time.Millisecond))
	if err != nil {
		fmt.Printf("%s\n", out)
		return fmt.Errorf("%s: %w", how, err)
	}
	fmt.Println(how)
	return nil
}

// burn uses a processor until ctx ends.
func burn(ctx context.Context) {
	for n := uint64(0); ctx.Err() == nil; {
		for range 1 << 20 {
			n = n*6364136223846793005 + 1442695040888963407
		}
	}
}
