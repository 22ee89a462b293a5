package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// Options says how large a benchmark is.
type Options struct {
	// Works and Objects are how many works there are and how many objects each has.
	Works, Objects int
	// Changes is how often one work is changed, and one object disturbed in each of two ways.
	Changes int
	// Idle is how long the agent is left alone before its memory at rest is measured.
	Idle time.Duration
	// Binaries is the directory with our programs, as in fleet.Options.
	Binaries string
	// Profiles is a directory that receives what both API servers did in each step; empty asks for none. That costs time
	// of its own: the other figures of such a run are not to be used.
	Profiles string
	// Log receives what happens; nil drops it.
	Log io.Writer
}

// DefaultOptions are those of the budgets of the design.
func DefaultOptions() Options {
	return Options{Works: 200, Objects: 10, Changes: 100, Idle: time.Minute}
}

const (
	clusterName = "bench"
	// patience bounds each step.
	patience = 5 * time.Minute
)

// run is a benchmark that runs.
type run struct {
	Options
	fleet   *fleet.Fleet
	cluster *fleet.Cluster
	// spoke and hub are administrators without a limit.
	spoke, hub client.WithWatch
	table      measure.Table
	// audit counts the requests to the cluster.
	audit *measure.Audit
	// applied and removed are how long the agent took for all works, template what it left of one.
	applied, removed time.Duration
	template         template
}

// Run measures; the figures come in the order of the life of the works.
func Run(ctx context.Context, o Options) ([]measure.Figure, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	f, err := fleet.New(ctx, fleet.Options{
		Clusters: []string{clusterName}, Binaries: o.Binaries, Audit: true, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, fleet: f, cluster: f.Cluster(clusterName), table: measure.Table{Log: o.Log}}
	r.audit = measure.NewAudit(r.cluster.ControlPlane.AuditLog())
	err = r.all(ctx)
	return r.table.Figures, errors.Join(err, f.Close())
}

func (r *run) all(ctx context.Context) error {
	var err error
	options := client.Options{Scheme: fleet.Scheme()}
	if r.spoke, err = client.NewWithWatch(r.cluster.ControlPlane.Admin(), options); err != nil {
		return fmt.Errorf("building the client of the cluster: %w", err)
	}
	if r.hub, err = client.NewWithWatch(r.fleet.Hub.Admin(), options); err != nil {
		return fmt.Errorf("building the client of the hub: %w", err)
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"joining", r.join}, {"at rest", r.rest}, {"applying", r.apply}, {"changing", r.change}, {"disturbing", r.disturb},
		{"idle", r.idle}, {"strangers", r.strangers}, {"deleting", r.remove},
		{"the floor", r.floor},
	} {
		fmt.Fprintf(r.Log, "%s %s\n", time.Now().UTC().Format(time.TimeOnly), step.name)
		ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %s", patience))
		profiled := r.profile(ctx, step.name)
		err := step.do(ctx)
		cancel()
		profiled.Wait()
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// join brings hub, agent and cluster up.
func (r *run) join(ctx context.Context) error {
	if err := r.fleet.InstallHub(ctx, nil); err != nil {
		return err
	}
	if err := r.fleet.StartAgent(ctx, r.cluster); err != nil {
		return err
	}
	if err := r.fleet.Accept(ctx, clusterName, nil); err != nil {
		return err
	}
	return r.fleet.WaitAvailable(ctx, r.cluster, nil)
}

// noteRatio adds a time beside what the same took without an agent; a budget of zero is none.
func (r *run) noteRatio(name string, value, bare time.Duration, budget float64) {
	ratio := float64(value) / float64(bare)
	measured := fmt.Sprintf("%s, %.2fx of %s bare", value.Round(time.Millisecond), ratio, bare.Round(time.Millisecond))
	if budget == 0 {
		r.table.Note(name, measured, "", true)
		return
	}
	r.table.Note(name, measured, fmt.Sprintf("%.1fx", budget), ratio <= budget)
}
