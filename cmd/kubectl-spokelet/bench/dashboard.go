package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/simulated"
)

// views are what is measured of the page once the fleet is read.
func views() []string {
	return []string{
		"", "addon?name=addon-07", "cluster?name=store-0042", "cluster?name=store-0042&addon=addon-09", "problems",
		"problems?code=SPK052", "clusters",
	}
}

// dashboard is the page as it is measured.
type dashboard struct {
	*simulated.Hub

	out                 io.Writer
	program, kubeconfig string
	rounds              int
}

// measure measures the page: the first view with the reading of the fleet, each view after that, and a second reading,
// during which the fleet is in memory twice.
func (d dashboard) measure(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := exec.CommandContext(ctx, d.program, "--kubeconfig", d.kubeconfig, "dashboard", "--open=false")
	said, err := c.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting the page: %w", err)
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting the page: %w", err)
	}
	defer func() { _ = c.Wait() }() // It is killed.
	defer stop()
	line, err := bufio.NewReader(said).ReadString('\n')
	_, address, found := strings.Cut(strings.TrimSpace(line), " at ")
	if !found {
		return fmt.Errorf("the page did not print its address: %q: %w", line, err)
	}
	done, peak := make(chan struct{}), make(chan int64)
	go watch(c.Process.Pid, done, peak)
	d.Reset()
	first, size, err := viewed(ctx, address)
	if err != nil {
		return err
	}
	first.requests, first.size = d.Asked()
	close(done)
	first.memory = <-peak
	printed(d.out, fmt.Sprintf("`dashboard`, until the first view is there (%d KiB)", size>>10), first)
	for _, path := range views() {
		var all []measured
		for range d.rounds {
			d.Reset()
			m, n, err := viewed(ctx, address+path)
			if err != nil {
				return err
			}
			size = n
			m.requests, m.size = d.Asked()
			all = append(all, m)
		}
		m := median(all)
		fmt.Fprintf(d.out, "| `dashboard`, view `/%s` (%d KiB) | %.2f s | | %d | %.1f MiB |\n", path, size>>10,
			m.took.Seconds(), m.requests, float64(m.size)/(1<<20))
	}
	return d.readAgain(ctx, c.Process.Pid, address)
}

// readAgain waits until the page has read the fleet a second time, and measures the memory until then.
func (d dashboard) readAgain(ctx context.Context, pid int, address string) error {
	done, peak := make(chan struct{}), make(chan int64)
	go watch(pid, done, peak)
	defer func() {
		close(done)
		fmt.Fprintf(d.out, "| `dashboard`, the fleet read again | | %d MiB | | |\n", <-peak>>20)
	}()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	d.Reset()
	for before := -1; ; {
		if _, _, err := viewed(ctx, address); err != nil {
			return err
		}
		requests, _ := d.Asked()
		if requests > 0 && requests == before {
			return nil
		}
		before = requests
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// viewed asks for a view, and returns how long that took and how many bytes it has.
func viewed(ctx context.Context, address string) (measured, int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return measured{}, 0, fmt.Errorf("asking for %s: %w", address, err)
	}
	begin := time.Now()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return measured{}, 0, fmt.Errorf("asking for a view: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer is %s", answer.Status)
	}
	if err != nil {
		return measured{}, 0, fmt.Errorf("reading a view: %w", err)
	}
	return measured{took: time.Since(begin)}, len(body), nil
}
