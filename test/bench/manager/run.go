package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/bench/spokes"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// settled is how long the hub manager must be quiet before it counts as at rest.
const settled = 3 * time.Second

// run is a benchmark that runs.
type run struct {
	Options
	// Table has the figures.
	*measure.Table
	// title precedes the name of each figure.
	title string
	// there is how many add-ons there are already on each cluster when others are installed.
	there  int
	fleet  *fleet.Fleet
	hub    client.WithWatch
	spokes *spokes.Spokes
	audit  *measure.Audit
	probe  *probe
	// revision is that of the templates in force, and made the last one of which there are templates.
	revision, made int
	sample         sample
	// smallest is the run with whose cost of a change and of a deletion those of this run are compared; nil for none.
	smallest *run
	// installing is what the installation cost, perChange what one change cost, and perDeletion the processor time of the
	// deletion of one add-on with a hook.
	installing, perChange cost
	perDeletion           time.Duration
}

// managerUser is the user of the hub manager.
func managerUser() string {
	return "system:serviceaccount:" + names.NamespaceHub + ":" + names.ServiceAccountManager
}

const (
	// collectorUser is the user of the garbage collector, and controllersUser the one whose watches it uses.
	collectorUser   = "system:serviceaccount:kube-system:generic-garbage-collector"
	controllersUser = "system:kube-controller-manager"
)

// Run measures a hub of one size, an add-on in the program of its author, and one add-on on one real cluster.
func Run(ctx context.Context, o Options, log io.Writer) ([]measure.Figure, error) {
	table := &measure.Table{Log: log}
	r, err := runHub(ctx, o, table, nil, "")
	if err == nil && o.Chart {
		err = chart(ctx, o, table, r.installing)
	}
	if err == nil && o.Rounds > 0 {
		err = first(ctx, o, table)
	}
	return table.Figures, err
}

// Grow measures hubs of several sizes, one after the other, and compares the cost of a change and of a
// deletion with that of the first.
func Grow(ctx context.Context, o Options, sizes []Size, log io.Writer) ([]measure.Figure, error) {
	table := &measure.Table{Log: log}
	var smallest *run
	for i, size := range sizes {
		one := o
		if one.Size = size; i < len(sizes)-1 {
			one.Keep, one.From = "", ""
		}
		r, err := runHub(ctx, one, table, smallest, size.String()+": ")
		if err != nil {
			return table.Figures, fmt.Errorf("%s: %w", size, err)
		}
		if i == 0 {
			smallest = r
		}
	}
	return table.Figures, nil
}

// runHub measures a hub of one size.
func runHub(ctx context.Context, o Options, table *measure.Table, smallest *run, title string) (*run, error) {
	if err := o.build(ctx); err != nil {
		return nil, err
	}
	options := fleet.Options{
		Binaries: o.Binaries, Audit: true, AuditPolicy: auditPolicy(), LeasesApart: o.LeasesApart, Stores: o.From,
		Log: table.Log,
	}
	if o.Lean {
		options.APIServerArgs = lean()
	}
	f, err := fleet.New(ctx, options)
	if err != nil {
		return nil, err
	}
	r := &run{
		Options: o, Table: table, fleet: f, audit: measure.NewAudit(f.Hub.AuditLog()), smallest: smallest, title: title,
	}
	err = r.all(ctx)
	if r.spokes != nil {
		r.spokes.Stop()
	}
	return r, errors.Join(err, f.Close())
}

// step is a part of a benchmark.
type step struct {
	// name is its text in the log, and option its name in Options.Only; a step without one is always played.
	name, option string
	do           func(context.Context) error
}

func (r *run) all(ctx context.Context) error {
	var err error
	if r.hub, err = client.NewWithWatch(r.fleet.Hub.Admin(), client.Options{Scheme: fleet.Scheme()}); err != nil {
		return fmt.Errorf("building the client of the hub: %w", err)
	}
	steps := append([]step{{"joining", "", r.join}}, r.measuring()...)
	if r.Size.More > 0 {
		steps = append(steps, step{"growing", "", r.grow})
		steps = append(steps, r.measuring()...)
	}
	for _, s := range append(steps, r.ending()...) {
		if s.option != "" && len(r.Only) > 0 && !slices.Contains(r.Only, s.option) {
			continue
		}
		fmt.Fprintf(r.Log, "%s %s%s\n", time.Now().UTC().Format(time.TimeOnly), r.title, s.name)
		patience := r.Size.patience()
		ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %s", patience))
		err := s.do(ctx)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// measuring are the steps that the options ask for at each size of one fleet.
func (r *run) measuring() []step {
	steps := []step{{"installing", "install", r.install}}
	if r.Idle > 0 {
		steps = append(steps, step{"idle", "idle", r.idle})
	}
	if r.Windows {
		steps = append(steps, step{"windows", "windows", r.windows})
	}
	if r.Changes > 0 {
		steps = append(steps, step{"changing", "change", r.change})
	}
	if r.Restart {
		steps = append(steps, step{"starting again", "restart", r.restart},
			step{"starting another version", "restart", r.replace})
	}
	return steps
}

// ending are the steps that write everything once more. They come last: a run that is ended early has the other
// figures.
func (r *run) ending() []step {
	var steps []step
	if r.Wave > 0 {
		steps = append(steps, step{"upgrading in waves", "waves", r.waves})
	}
	steps = append(steps, step{"upgrading", "upgrade", r.upgrade}, step{"uninstalling", "uninstall", r.uninstall})
	if r.Hooks {
		steps = append(steps, step{"installing hooks", "hooks", r.hook}, step{"deleting", "hooks", r.delete})
	}
	return append(steps, step{"the floor", "floor", r.floor})
}

// grow makes the fleet one with further add-ons on each cluster. Those are what is installed next.
func (r *run) grow(context.Context) error {
	r.there, r.Size = r.Size.AddOns, r.Size.grown()
	r.title = r.Size.String() + ": "
	return nil
}

// join brings the hub and its clusters up.
func (r *run) join(ctx context.Context) error {
	var args []string
	var err error
	if r.probe, args, err = newProbe(r.Profiles, r.title, r.fleet.Hub.Admin(), r.Log); err != nil {
		return err
	}
	if err := r.fleet.InstallHub(ctx, nil, args...); err != nil {
		return err
	}
	identity, err := r.fleet.Hub.User(spokes.User, spokes.Group)
	if err != nil {
		return err
	}
	// The clusters outlive the step.
	r.spokes, err = spokes.Start(context.WithoutCancel(ctx), spokes.Options{
		Config: identity, Heartbeat: r.Heartbeat, Log: r.Log,
	})
	if err != nil {
		return err
	}
	if err := r.populate(ctx); err != nil {
		return err
	}
	if err := r.quiet(ctx); err != nil {
		return err
	}
	const state = "all clusters and no add-on"
	return errors.Join(r.noteMemory("memory with "+state, 0), r.noteServers(state))
}

// populate brings all clusters to the hub, or finds those of an earlier run there.
func (r *run) populate(ctx context.Context) error {
	clusters := make([]string, r.Size.Clusters)
	for i := range clusters {
		clusters[i] = clusterName(i)
	}
	if r.From != "" {
		return r.spokes.Return(ctx, clusters)
	}
	for _, object := range groundwork() {
		if err := r.hub.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	began := time.Now()
	if err := r.spokes.Join(ctx, clusters, map[string]string{labelBench: "true"}); err != nil {
		return err
	}
	r.Time(r.title+"clusters created until all are available", time.Since(began), 0)
	if r.Keep == "" {
		return nil
	}
	return r.fleet.Hub.Keep(ctx, r.Keep)
}

// prepare creates the templates of all add-ons at a new revision, and returns it.
func (r *run) prepare(ctx context.Context) (int, error) { return r.prepareAs(ctx, template) }

// prepareAs does that with templates of a kind.
func (r *run) prepareAs(
	ctx context.Context, kind func(addOn string, revision int) (*addonv1alpha1.AddOnTemplate, error),
) (int, error) {
	r.made++
	return r.made, r.templates(ctx, kind, 0, r.made)
}

// templates creates the templates of a kind and a revision, of the add-ons from one on.
func (r *run) templates(
	ctx context.Context, kind func(addOn string, revision int) (*addonv1alpha1.AddOnTemplate, error), from, revision int,
) error {
	for i := from; i < r.Size.AddOns; i++ {
		t, err := kind(addOnName(i), revision)
		if err != nil {
			return err
		}
		if err := r.hub.Create(ctx, t); err != nil {
			return fmt.Errorf("creating template %s: %w", t.Name, err)
		}
	}
	return r.quiet(ctx)
}

// writers is how many writers send the requests of the floor and other requests of ours at once.
const writers = 10

// spread calls do for 0 to n-1 from several goroutines.
func spread(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
