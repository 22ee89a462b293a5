package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// idle leaves the hub manager alone and counts what it does nevertheless. The garbage collector learns of the kinds of
// the hub some time after their definitions, and until then looks up every object by itself; the idle time begins after
// that.
func (r *run) idle(ctx context.Context) error {
	if err := r.collectorKnows(ctx); err != nil {
		return err
	}
	if err := r.quiet(ctx); err != nil {
		return err
	}
	before, err := r.at()
	if err != nil {
		return err
	}
	others, err := r.audit.Of(collectorUser)
	if err != nil {
		return err
	}
	servers, err := r.load()
	if err != nil {
		return err
	}
	began := time.Now()
	if !fleet.Pause(ctx, r.Idle) {
		return context.Cause(ctx)
	}
	after, err := r.at()
	if err != nil {
		return err
	}
	used, err := r.load()
	if err != nil {
		return err
	}
	r.Note(fmt.Sprintf("%sprocessor time of the others over %s at rest", r.title, r.Idle),
		used.since(servers).String(), "", true)
	sent := after.requests.Since(before.requests)
	r.Note(fmt.Sprintf("%srequests over %s at rest, leases and watches aside", r.title, r.Idle),
		fmt.Sprint(sent.Count), "0", sent.Count == 0)
	if sent.Count > 0 {
		fmt.Fprintf(r.Log, "  the hub manager sent: %s\n", sent)
	}
	collector, err := r.audit.Of(collectorUser)
	if err != nil {
		return err
	}
	r.Number(r.title+"requests of the garbage collector meanwhile", float64(collector.Since(others).Count), 0, "", 0)
	milli := 1000 * float64(after.processor-before.processor) / float64(time.Since(began))
	r.Number(r.title+"processor at rest", milli, 1, "m", 0)
	limit := large(r.Size).rest
	if r.Size == budgeted() {
		limit = 64
	}
	if err := r.noteServers("all add-ons"); err != nil {
		return err
	}
	return r.noteMemory(fmt.Sprintf("memory %s after the last request", r.Idle), limit)
}

// collectorMost is how long the garbage collector may need to learn of new kinds, of which it hears every 30 seconds.
const collectorMost = 3 * time.Minute

// collectorKnows waits until the garbage collector watches the kinds that the hub manager writes.
func (r *run) collectorKnows(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, collectorMost, fmt.Errorf("gave up after %s", collectorMost))
	defer cancel()
	return fleet.Wait(ctx, "the garbage collector to know the kinds of the hub", nil, func(context.Context) error {
		requests, err := r.audit.Of(controllersUser)
		if err != nil {
			return err
		}
		for _, resource := range []string{"managedclusteraddons", "manifestworks", "placementdecisions"} {
			if requests.Watches[resource] == 0 {
				return fleet.NotYet("it does not watch %s", resource)
			}
		}
		return nil
	})
}

// collectorQuiet waits until the garbage collector has sent nothing for a while: after an uninstallation it deletes
// what belonged to the add-ons.
func (r *run) collectorQuiet(ctx context.Context) error {
	last, since := -1, time.Now()
	return fleet.Wait(ctx, "the garbage collector to be at rest", nil, func(context.Context) error {
		now, err := r.audit.Of(collectorUser)
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
