package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// requests returns what the agent has sent to its cluster so far, leases and watches aside.
func (r *run) requests() (measure.Requests, error) {
	return r.audit.Of("system:serviceaccount:" + names.NamespaceAgent + ":" + names.ServiceAccountAgent)
}

// requestsSince returns how many requests the agent has sent to its cluster since an earlier state.
func (r *run) requestsSince(before measure.Requests) (int, error) {
	now, err := r.requests()
	return now.Since(before).Count, err
}

// quiet waits until the agent has asked nothing of its cluster for a while.
func (r *run) quiet(ctx context.Context) error {
	last, since := -1, time.Now()
	return fleet.Wait(ctx, "the agent to be at rest", nil, func(context.Context) error {
		now, err := r.requests()
		if err != nil {
			return err
		}
		if now.Count != last {
			last, since = now.Count, time.Now()
		}
		if time.Since(since) < settled {
			return fleet.NotYet("%d requests", now.Count)
		}
		return nil
	})
}

// noteMemory adds the resident memory of the agent, pages of its program included; a budget of zero is none.
func (r *run) noteMemory(name string, budget float64) error {
	found, err := measure.Resident(r.cluster.Agent.PID())
	if err != nil {
		return err
	}
	if budget == 0 {
		r.table.Note(name, found.String(), "", true)
		return nil
	}
	r.table.Note(name, found.String(), fmt.Sprintf("%.0f MiB", budget), found.Resident() <= budget*measure.Mebibyte)
	return nil
}

// noteProgram adds the size of the agent's program file; the budget is in megabytes.
func (r *run) noteProgram(budget float64) error {
	info, err := os.Stat(fmt.Sprintf("/proc/%d/exe", r.cluster.Agent.PID()))
	if err != nil {
		return fmt.Errorf("looking up the program of the agent: %w", err)
	}
	size := float64(info.Size()) / 1e6
	r.table.Note("program file", fmt.Sprintf("%.1f MB", size), fmt.Sprintf("%.0f MB", budget), size <= budget)
	return nil
}

// cpu returns the processor time that the agent has used.
func (r *run) cpu() (time.Duration, error) { return measure.Processor(r.cluster.Agent.PID()) }

// notePercentiles adds the middle and the worst but one of a hundred; a budget of zero is none.
func (r *run) notePercentiles(name string, took []time.Duration, middle, worst time.Duration) {
	r.table.Time(name+", p50", measure.Percentile(took, 0.50), middle)
	r.table.Time(name+", p99", measure.Percentile(took, 0.99), worst)
}
