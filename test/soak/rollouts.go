package soak

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// DefaultEvery is how long after a rollout the next one begins.
	DefaultEvery = time.Minute
	// rollingAddon is the add-on, and its objects.
	rollingAddon = "rolling"
	// patience is how long a rollout may take.
	patience = 3 * time.Minute
	// quiet is how long nothing may be written after a rollout, and settling how long it may take until that begins.
	quiet, settling = 2 * time.Second, 15 * time.Second
)

// rollingFile is the add-on as its author writes it.
//
//go:embed rollouts.yaml
var rollingFile string

// RolloutsOptions says how long and with what a soak of rollouts runs.
type RolloutsOptions struct {
	// Duration is after which time no rollout begins any more, and Least how many there are at least.
	Duration time.Duration
	Least    int
	// Every is how long after the begin of a rollout the next one begins, if it is complete; 0 means DefaultEvery.
	Every time.Duration
	// Binaries is the directory with our programs, as in fleet.Options.
	Binaries string
	// Dir receives logs and data, as in fleet.Options; empty means a temporary directory.
	Dir string
	// Samples receives what the programs use, and SampleEvery says how often, as in fleet.Options.
	Samples     string
	SampleEvery time.Duration
	// Log receives what happens; nil drops it.
	Log io.Writer
}

// RolloutsReport holds what a soak of rollouts measured.
type RolloutsReport struct {
	// Clusters is how many clusters the add-on has.
	Clusters int
	// Took is how long each rollout took, from the edit until all of it was complete.
	Took []time.Duration
	// Late counts those of them that took longer than the time to the next one.
	Late int
	// Begun counts how often a cluster was seen to get another version.
	Begun int
	// Violations are what must not be: clusters that move at the same time, a rollout that does not end, writes after it;
	// none is expected.
	Violations []string
}

// rollouts is a soak that runs.
type rollouts struct {
	RolloutsOptions

	fleet  *fleet.Fleet
	audits measure.Audits
	users  map[string][]string
	// rest holds what had been written when the last rollout had come to rest.
	rest map[string]int

	mu     sync.Mutex
	report RolloutsReport
	// version is the one that is rolled out, and has the one that the work of each cluster has.
	version string
	has     map[string]string
}

// Rollouts runs a soak of rollouts.
func Rollouts(ctx context.Context, o RolloutsOptions) (RolloutsReport, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	f, err := fleet.New(ctx, fleet.Options{
		Clusters: []string{"rolling1", "rolling2", "rolling3"}, Binaries: o.Binaries, Dir: o.Dir, Audit: true,
		Samples: o.Samples, SampleEvery: o.SampleEvery, Log: o.Log,
	})
	if err != nil {
		return RolloutsReport{}, err
	}
	r := &rollouts{RolloutsOptions: o, fleet: f, has: map[string]string{}, audits: measure.Audits{
		fleet.HubName: measure.NewAudit(f.Hub.AuditLog()),
	}}
	played, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	others.Go(func() { r.watchWorks(played) })
	for _, cluster := range f.Clusters() {
		r.audits[cluster.Name] = measure.NewAudit(cluster.ControlPlane.AuditLog())
		others.Go(func() { cluster.RunPods(played, names.NamespaceAgentAddon, nil, o.Log) })
	}
	err = r.all(ctx)
	stop()
	others.Wait()
	return r.report, errors.Join(err, f.Close())
}

// all prepares the fleet and rolls out one version after the other.
func (r *rollouts) all(ctx context.Context) error {
	r.report.Clusters = len(r.fleet.Clusters())
	if err := r.prepare(ctx); err != nil {
		return fmt.Errorf("preparing the rollouts: %w", err)
	}
	began := time.Now()
	for n := 1; n <= max(r.Least, 1) || time.Since(began) < r.Duration; n++ {
		from := time.Now()
		if wrong := r.rollOut(ctx, n); wrong != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r.violate("version v%d: %v", n, wrong)
			return nil // the next one would tell nothing
		}
		if wait := r.Every - time.Since(from); wait > 0 && !fleet.Pause(ctx, wait) {
			return context.Cause(ctx)
		}
	}
	return r.sameWrites()
}

// prepare brings everything up, until all clusters have the first version.
func (r *rollouts) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %s", patience))
	defer cancel()
	if err := r.fleet.InstallHub(ctx, nil); err != nil {
		return err
	}
	for _, cluster := range r.fleet.Clusters() {
		if err := r.fleet.StartAgent(ctx, cluster); err != nil {
			return err
		}
	}
	for _, cluster := range r.fleet.Clusters() {
		if err := r.fleet.Accept(ctx, cluster.Name, nil); err != nil {
			return err
		}
		if err := r.fleet.WaitAvailable(ctx, cluster, nil); err != nil {
			return err
		}
	}
	var err error
	if r.users, err = r.fleet.Users(ctx); err != nil {
		return err
	}
	if err := r.write(ctx, "v0"); err != nil {
		return err
	}
	if err := r.complete(ctx, "v0"); err != nil {
		return err
	}
	return r.settle(ctx)
}

// rollOut rolls out a version, deletes the one before, which nobody uses then, and waits until nothing is written.
func (r *rollouts) rollOut(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %s", patience))
	defer cancel()
	if err := r.sameWrites(); err != nil {
		return err
	}
	version, before := fmt.Sprintf("v%d", n), fmt.Sprintf("v%d", n-1)
	began := time.Now()
	r.mu.Lock()
	r.version = version
	r.mu.Unlock()
	if err := r.write(ctx, version); err != nil {
		return err
	}
	if err := r.complete(ctx, version); err != nil {
		return err
	}
	took := time.Since(began)
	fmt.Fprintf(r.Log, "%s version %s is complete after %s\n", time.Now().UTC().Format(time.TimeOnly), version,
		took.Round(time.Millisecond))
	r.mu.Lock()
	r.report.Took = append(r.report.Took, took)
	if took > r.Every {
		r.report.Late++
	}
	r.mu.Unlock()
	if err := r.fleet.HubClient.Delete(ctx, templateOf(before)); err != nil {
		return fmt.Errorf("deleting the template of %s: %w", before, err)
	}
	if err := fleet.Wait(ctx, "the content of "+before+" to go", nil, r.oneContent); err != nil {
		return err
	}
	return r.settle(ctx)
}

// oneContent returns an error unless the hub manager keeps the content of one version. It keeps each for ten seconds at
// least, so the last one may go after everything else is done.
func (r *rollouts) oneContent(ctx context.Context) error {
	var contents appsv1.ControllerRevisionList
	if err := r.fleet.HubClient.List(ctx, &contents, client.InNamespace(names.NamespaceHub)); err != nil {
		return fmt.Errorf("listing the stored contents: %w", err)
	}
	if n := len(contents.Items); n != 1 {
		return fleet.NotYet("%d contents are stored", n)
	}
	return nil
}

// settle waits until nothing is written any more, and notes what was.
func (r *rollouts) settle(ctx context.Context) error {
	written := func() (map[string]int, error) { return r.audits.Written(r.users) }
	if err := measure.Rest(ctx, quiet, settling, written); err != nil {
		return err
	}
	var err error
	r.rest, err = written()
	return err
}

// sameWrites reports what was written since the fleet had come to rest.
func (r *rollouts) sameWrites() error {
	now, err := r.audits.Written(r.users)
	if err != nil {
		return err
	}
	for what, n := range now {
		if n > r.rest[what] {
			r.violate("after version %s was complete and all was at rest: %d more of %s", r.version, n-r.rest[what], what)
		}
	}
	return nil
}

func (r *rollouts) violate(format string, args ...any) {
	what := time.Now().UTC().Format(time.TimeOnly) + " " + fmt.Sprintf(format, args...)
	fmt.Fprintln(r.Log, what)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Violations = append(r.report.Violations, what)
}
