package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// ticksPerSecond is the unit of processor time in /proc on Linux.
const ticksPerSecond = 100

// request is what is needed of a line of an audit log.
type request struct {
	Verb  string    `json:"verb"`
	Stage time.Time `json:"requestReceivedTimestamp"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource string `json:"resource"`
	} `json:"objectRef"`
}

// requests counts what the agent asked of its cluster since an instant, leases and watches aside.
func (r *run) requests(since time.Time) (int, error) {
	log, err := os.Open(r.cluster.ControlPlane.AuditLog())
	if err != nil {
		return 0, fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { _ = log.Close() }()
	agent := "system:serviceaccount:" + names.NamespaceAgent + ":" + names.ServiceAccountAgent
	n := 0
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, mebibyte)
	for lines.Scan() {
		var one request
		if json.Unmarshal(lines.Bytes(), &one) != nil {
			continue // the last line may still be on its way
		}
		if one.User.Username == agent && one.Verb != "watch" && one.Object.Resource != "leases" && !one.Stage.Before(since) {
			n++
		}
	}
	return n, lines.Err()
}

// quiet waits until the agent has asked nothing of its cluster for a while.
func (r *run) quiet(ctx context.Context) error {
	began, last, since := time.Now(), -1, time.Now()
	return fleet.Wait(ctx, "the agent to be at rest", nil, func(context.Context) error {
		n, err := r.requests(began)
		if err != nil {
			return err
		}
		if n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) < settled {
			return fleet.NotYet("%d requests", n)
		}
		return nil
	})
}

// noteMemory adds the resident memory of the agent, pages of its program included; a budget of zero is none.
func (r *run) noteMemory(name string, budget float64) error {
	found, err := footprint(r.cluster.Agent.PID())
	if err != nil {
		return err
	}
	if budget == 0 {
		r.note(name, found.String(), "", true)
		return nil
	}
	r.note(name, found.String(), fmt.Sprintf("%.0f MiB", budget), found.Resident() <= budget*mebibyte)
	return nil
}

// noteProgram adds the size of the agent's program file; the budget is in megabytes.
func (r *run) noteProgram(budget float64) error {
	info, err := os.Stat(fmt.Sprintf("/proc/%d/exe", r.cluster.Agent.PID()))
	if err != nil {
		return fmt.Errorf("looking up the program of the agent: %w", err)
	}
	size := float64(info.Size()) / 1e6
	r.note("program file", fmt.Sprintf("%.1f MB", size), fmt.Sprintf("%.0f MB", budget), size <= budget)
	return nil
}

// cpu returns the processor time that the agent has used.
func (r *run) cpu() (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cluster.Agent.PID()))
	if err != nil {
		return 0, fmt.Errorf("reading the processor time of the agent: %w", err)
	}
	// The name of the program, in parentheses, may hold blanks; user and system time are fields 14 and 15.
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("reading the processor time of the agent: %q", raw)
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the processor time of the agent: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// notePercentiles adds the middle and the worst but one of a hundred; a budget of zero is none.
func (r *run) notePercentiles(name string, took []time.Duration, middle, worst time.Duration) {
	slices.Sort(took)
	at := func(share float64) time.Duration { return took[min(int(share*float64(len(took))), len(took)-1)] }
	if middle > 0 {
		r.noteTime(name+", p50", at(0.50), middle)
	} else {
		r.note(name+", p50", at(0.50).Round(time.Millisecond).String(), "", true)
	}
	if worst > 0 {
		r.noteTime(name+", p99", at(0.99), worst)
	} else {
		r.note(name+", p99", at(0.99).Round(time.Millisecond).String(), "", true)
	}
}
