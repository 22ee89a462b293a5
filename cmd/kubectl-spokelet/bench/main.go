package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/simulated"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // Nothing is left to stop.
	}
}

// measured has the cost of one run of the program.
type measured struct {
	took     time.Duration
	memory   int64
	requests int
	size     int
}

// run measures the commands.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	program := flags.String("program", "", "the program to measure")
	clusterCount := flags.Int("clusters", 3000, "how many clusters there are")
	addOnCount := flags.Int("addons", 20, "how many add-ons each has")
	only := flags.String("only", "", "measure commands that begin so, such as dashboard; empty means all")
	rounds := flags.Int("rounds", 3, "how often each command is measured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	h, err := simulated.Large(*clusterCount, *addOnCount)
	if err != nil {
		return err
	}
	server := httptest.NewServer(http.Handler(h))
	defer server.Close()
	folder, err := os.MkdirTemp("", "bench-plugin-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // A folder that is left does no harm.
	kubeconfig, changed := filepath.Join(folder, "kubeconfig"), filepath.Join(folder, "changed.json")
	if err := errors.Join(
		os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}],
"clusters": [{"name": "c", "cluster": {"server": %q}}]}`, server.URL), 0o600),
		os.WriteFile(changed, changedTemplate(h), 0o600),
	); err != nil {
		return fmt.Errorf("writing the files: %w", err)
	}
	fmt.Fprintf(out, "%d clusters with %d add-ons each; the median of %d runs\n\n", *clusterCount, *addOnCount, *rounds)
	fmt.Fprintln(out, "| command | time | memory | requests | read |")
	fmt.Fprintln(out, "|---|---|---|---|---|")
	bundle := filepath.Join(folder, "fleet.tgz")
	for _, line := range []string{
		"check", "tree", "tree addon addon-07", "why addon addon-07 -n store-0042", "why cluster store-0099",
		"get addons -n store-0042", "rollout status addon addon-07", "diff addon addon-07 -f " + changed,
		"bundle -f " + bundle, "check --from " + bundle,
	} {
		if !strings.HasPrefix(line, *only) {
			continue
		}
		var all []measured
		for range *rounds {
			one, err := measure(ctx, h, *program, append([]string{"--kubeconfig", kubeconfig}, strings.Fields(line)...))
			if err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			all = append(all, one)
		}
		printed(out, fmt.Sprintf("`%s`", strings.ReplaceAll(line, folder+"/", "")), median(all))
	}
	if *only != "" && *only != "dashboard" {
		return nil
	}
	return dashboard{Hub: h, out: out, program: *program, kubeconfig: kubeconfig, rounds: *rounds}.measure(ctx)
}

// median is the run in the middle by time.
func median(all []measured) measured {
	slices.SortFunc(all, func(a, b measured) int { return int(a.took - b.took) })
	return all[len(all)/2]
}

// printed prints a row.
func printed(out io.Writer, what string, m measured) {
	fmt.Fprintf(out, "| %s | %.2f s | %d MiB | %d | %.1f MiB |\n", what, m.took.Seconds(), m.memory>>20, m.requests,
		float64(m.size)/(1<<20))
}

// changedTemplate is the template of an add-on with another image.
func changedTemplate(h *simulated.Hub) []byte {
	return bytes.ReplaceAll(h.Template("addon-07"), []byte(":1.9"), []byte(":1.10"))
}

// measure runs the program once. Statuses 0 and 1 are answers.
func measure(ctx context.Context, h *simulated.Hub, program string, args []string) (measured, error) {
	h.Reset()
	c := exec.CommandContext(ctx, program, args...)
	var errs strings.Builder
	c.Stdout, c.Stderr = io.Discard, &errs
	begin := time.Now()
	if err := c.Start(); err != nil {
		return measured{}, fmt.Errorf("starting the program: %w", err)
	}
	done := make(chan struct{})
	peak := make(chan int64)
	go watch(c.Process.Pid, done, peak)
	err := c.Wait()
	m := measured{took: time.Since(begin)}
	close(done)
	m.memory = <-peak
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return m, fmt.Errorf("%w: %s", err, errs.String())
	}
	m.requests, m.size = h.Asked()
	return m, nil
}

// watch reads the most memory that a process had, in bytes, until it is done. What the system says of it afterwards
// counts the memory of the process that started it.
func watch(pid int, done <-chan struct{}, peak chan<- int64) {
	const often = 5 * time.Millisecond
	most := int64(0)
	ticker := time.NewTicker(often)
	defer ticker.Stop()
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if _, rest, found := strings.Cut(string(status), "VmHWM:"); found && err == nil {
			var kilobytes int64
			if _, err := fmt.Sscan(rest, &kilobytes); err == nil {
				most = max(most, kilobytes<<10)
			}
		}
		select {
		case <-done:
			peak <- most
			return
		case <-ticker.C:
		}
	}
}
