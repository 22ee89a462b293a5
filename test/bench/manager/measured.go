package manager

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// budget is how much a step may cost; zero is not a budget.
type budget struct {
	took      time.Duration
	requests  float64
	processor time.Duration
	// memory is the peak of the hub manager in MiB.
	memory float64
}

// cost holds what a step cost the hub manager.
type cost struct {
	took, processor time.Duration
	requests        measure.Requests
	// memory is the peak of its resident memory in bytes.
	memory float64
	// others holds what the other processes used.
	others load
}

// at returns the state of the counters of the hub manager.
func (r *run) at() (cost, error) { return r.usedBy(r.fleet.HubManager(), managerUser()) }

// usedBy returns what a process that still runs has used so far, and its user has sent.
func (r *run) usedBy(process *sandbox.Process, user string) (cost, error) {
	if err := process.Exited(); err != nil {
		return cost{}, err
	}
	requests, err := r.audit.Of(user)
	if err != nil {
		return cost{}, err
	}
	processor, err := measure.Processor(process.PID())
	if err != nil {
		return cost{}, err
	}
	memory, err := measure.Peak(process.PID())
	return cost{processor: processor, requests: requests, memory: memory}, err
}

// pid is the process of the hub manager.
func (r *run) pid() int { return r.fleet.HubManager().PID() }

// cost measures what a step costs the hub manager until it is quiet. The step returns how long it took.
func (r *run) cost(ctx context.Context, name string, do func(context.Context) (time.Duration, error)) (cost, error) {
	r.spokes.Stats()
	if err := measure.ResetPeak(r.pid()); err != nil {
		return cost{}, err
	}
	before, err := r.at()
	if err != nil {
		return cost{}, err
	}
	others, err := r.load()
	if err != nil {
		return cost{}, err
	}
	if err := r.probe.begin(ctx, name); err != nil {
		return cost{}, err
	}
	took, err := do(ctx)
	if err != nil {
		return cost{}, err
	}
	if err := r.quiet(ctx); err != nil {
		return cost{}, err
	}
	if err := r.probe.end(ctx, name); err != nil {
		return cost{}, err
	}
	after, err := r.at()
	if err != nil {
		return cost{}, err
	}
	used, err := r.load()
	if err != nil {
		return cost{}, err
	}
	fmt.Fprintf(r.Log, "  the hub manager sent: %s\n", after.requests.Since(before.requests))
	return cost{
		took: took, processor: after.processor - before.processor,
		requests: after.requests.Since(before.requests), memory: after.memory, others: used.since(others),
	}, nil
}

// measured measures a step with a number of add-ons and adds its figures: time, requests per add-on, processor time,
// memory, and how busy the clusters were.
func (r *run) measured(
	ctx context.Context, name string, addOns int, budget budget, do func(context.Context) (time.Duration, error),
) (cost, error) {
	c, err := r.cost(ctx, name, do)
	if err != nil {
		return cost{}, err
	}
	r.Time(r.title+name, c.took, budget.took)
	r.Number(r.title+name+", requests per add-on",
		float64(c.requests.Count)/float64(addOns), 1, "", budget.requests)
	r.Number(r.title+name+", lost races", float64(c.requests.Conflicts), 0, "", 0)
	r.Time(r.title+name+", processor", c.processor, budget.processor)
	r.Number(r.title+name+", memory at most", c.memory/measure.Mebibyte, 0, " MiB", budget.memory)
	r.Note(r.title+name+", processor of others", c.others.String(), "", true)
	r.Note(r.title+name+", simulated clusters", r.spokes.Stats().String(), "", true)
	return c, nil
}

// budgeted returns a budget where the design has one for the size of this run.
func (r *run) budgeted(b budget) budget {
	if r.Size == budgeted() {
		return b
	}
	// Requests per add-on do not depend on the size.
	return budget{requests: b.requests, memory: large(r.Size).peak()}
}

// quiet waits until the hub manager has sent nothing for a while and needs hardly any processor time. A list of many
// objects is one request that shows in the audit log only when it is done.
func (r *run) quiet(ctx context.Context) error {
	_, err := r.quietSince(ctx)
	return err
}

// quietSince does that and returns when the quiet began.
func (r *run) quietSince(ctx context.Context) (time.Time, error) {
	return restSince(ctx, "the hub manager to be at rest", r.at)
}

// restSince waits until a process has sent nothing for a while and needs hardly any processor time, and returns since
// when that is. at returns what the process has used so far.
func restSince(ctx context.Context, what string, at func() (cost, error)) (time.Time, error) {
	const hardly = settled / 20
	last, since := cost{requests: measure.Requests{Count: -1}}, time.Now()
	err := fleet.Wait(ctx, what, nil, func(context.Context) error {
		now, err := at()
		if err != nil {
			return err
		}
		if now.requests.Count != last.requests.Count || now.processor-last.processor > hardly {
			last, since = now, time.Now()
		}
		if time.Since(since) < settled {
			return fleet.NotYet("%d requests, %s of processor time", now.requests.Count, now.processor)
		}
		return nil
	})
	return since, err
}

// noteMemory adds the resident memory of the hub manager, pages of its program included; a budget of zero is none.
func (r *run) noteMemory(name string, budget float64) error {
	found, err := measure.Resident(r.pid())
	if err != nil {
		return err
	}
	name = r.title + name
	if budget == 0 {
		r.Note(name, found.String(), "", true)
		return nil
	}
	r.Note(name, found.String(), fmt.Sprintf("%.0f MiB", budget), found.Resident() <= budget*measure.Mebibyte)
	return nil
}

// noteServers adds what the API server and its store use at a state: the limits that a hub reaches beside the hub
// manager.
func (r *run) noteServers(state string) error {
	server, err := measure.Peak(r.fleet.Hub.APIServer().PID())
	if err != nil {
		return err
	}
	text := fmt.Sprintf("API server %.0f MiB at most", server/measure.Mebibyte)
	sizes, err := r.fleet.Hub.StoreSizes()
	if err != nil {
		return err
	}
	for i, store := range r.fleet.Hub.Stores() {
		memory, err := measure.Resident(store.PID())
		if err != nil {
			return err
		}
		text += fmt.Sprintf(", %s %.0f MiB and %.0f MiB on disk", [...]string{"etcd", "etcd of leases"}[i],
			memory.Resident()/measure.Mebibyte, sizes[i]/measure.Mebibyte)
	}
	r.Note(r.title+"servers with "+state, text, "", true)
	return nil
}

// load is the processor time of the other processes on the machine that take part.
type load struct {
	etcd, leases, apiserver, controllers, own time.Duration
}

// load returns the processor time that the others have used so far.
func (r *run) load() (load, error) {
	var l load
	into := []*time.Duration{&l.own, &l.etcd, &l.apiserver, &l.controllers, &l.leases}
	for i, pid := range append([]int{os.Getpid()}, r.fleet.Hub.PIDs()...) {
		var err error
		if *into[i], err = measure.Processor(pid); err != nil {
			return load{}, err
		}
	}
	return l, nil
}

// since returns what was used after an earlier state.
func (l load) since(before load) load {
	return load{
		etcd: l.etcd - before.etcd, leases: l.leases - before.leases, apiserver: l.apiserver - before.apiserver,
		controllers: l.controllers - before.controllers, own: l.own - before.own,
	}
}

// String lists the times in seconds.
func (l load) String() string {
	text := fmt.Sprintf("API server %.1fs, etcd %.1fs, controllers %.1fs, benchmark and clusters %.1fs",
		l.apiserver.Seconds(), l.etcd.Seconds(), l.controllers.Seconds(), l.own.Seconds())
	if l.leases > 0 {
		text += fmt.Sprintf(", etcd of leases %.1fs", l.leases.Seconds())
	}
	return text
}
