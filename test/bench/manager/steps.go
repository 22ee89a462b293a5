package manager

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/bench/spokes"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// install has the placement install all add-ons on all clusters.
func (r *run) install(ctx context.Context) error {
	// Further add-ons get the revision of those that are there: what is Completed is asked of all.
	if r.there == 0 {
		r.made++
		r.revision = r.made
	}
	if err := r.templates(ctx, template, r.there, r.revision); err != nil {
		return err
	}
	limits := r.budgeted(budget{took: 8 * time.Second, requests: 7, processor: 4 * time.Second, memory: 64})
	added := (r.Size.AddOns - r.there) * r.Size.Clusters
	c, err := r.measured(ctx, "install", added, limits, func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		for i := r.there; i < r.Size.AddOns; i++ {
			if err := r.hub.Create(ctx, management(addOnName(i), r.revision)); err != nil {
				return 0, fmt.Errorf("creating add-on %s: %w", addOnName(i), err)
			}
		}
		ended, err := r.awaitCompleted(ctx, r.revision)
		return ended.Sub(began), err
	})
	if err != nil {
		return err
	}
	r.installing = c
	return r.take(ctx)
}

// upgrade moves all add-ons to new templates at once.
func (r *run) upgrade(ctx context.Context) error {
	var err error
	if r.revision, err = r.prepare(ctx); err != nil {
		return err
	}
	limits := r.budgeted(budget{took: 5 * time.Second, requests: 3, processor: 2 * time.Second})
	_, err = r.measured(ctx, "upgrade", r.Size.all(), limits, func(ctx context.Context) (time.Duration, error) {
		return r.move(ctx, clusterv1alpha1.RolloutStrategy{})
	})
	return err
}

// move gives all add-ons the templates of the revision, with a rollout strategy, and returns how long that took.
func (r *run) move(ctx context.Context, strategy clusterv1alpha1.RolloutStrategy) (time.Duration, error) {
	began := time.Now()
	for i := range r.Size.AddOns {
		err := r.edit(ctx, addOnName(i), func(cma *addonv1alpha1.ClusterManagementAddOn) {
			placement := &cma.Spec.InstallStrategy.Placements[0]
			placement.Configs = []addonv1alpha1.AddOnConfig{config(cma.Name, r.revision)}
			placement.RolloutStrategy = strategy
		})
		if err != nil {
			return 0, err
		}
	}
	ended, err := r.awaitCompleted(ctx, r.revision)
	return ended.Sub(began), err
}

// edit changes a ClusterManagementAddOn.
func (r *run) edit(ctx context.Context, name string, change func(*addonv1alpha1.ClusterManagementAddOn)) error {
	var cma addonv1alpha1.ClusterManagementAddOn
	if err := r.hub.Get(ctx, client.ObjectKey{Name: name}, &cma); err != nil {
		return fmt.Errorf("reading add-on %s: %w", name, err)
	}
	before := cma.DeepCopy()
	change(&cma)
	if err := r.hub.Patch(ctx, &cma, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("changing add-on %s: %w", name, err)
	}
	return nil
}

// waveDelay is how long a cluster needs for an upgrade in waves; without it there would be no waves.
const waveDelay = 200 * time.Millisecond

// waves moves all add-ons to new templates, a few clusters at a time, and compares what the clusters saw.
func (r *run) waves(ctx context.Context) error {
	var err error
	if r.revision, err = r.prepare(ctx); err != nil {
		return err
	}
	r.spokes.Delay(waveDelay)
	defer r.spokes.Delay(0)
	r.spokes.Stats()
	strategy := clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive,
		Progressive: &clusterv1alpha1.RolloutProgressive{
			MaxConcurrency: intstr.FromInt(r.Wave),
		},
	}
	name := fmt.Sprintf("upgrade in waves of %d, %s each", r.Wave, waveDelay)
	var seen spokes.Stats
	c, err := r.cost(ctx, "waves", func(ctx context.Context) (time.Duration, error) {
		took, err := r.move(ctx, strategy)
		seen = r.spokes.Stats()
		return took, err
	})
	if err != nil {
		return err
	}
	r.Time(r.title+name, c.took, 0)
	r.Number(r.title+name+", requests per add-on", float64(c.requests.Count)/float64(r.Size.all()), 1, "", 0)
	r.Time(r.title+name+", processor", c.processor, 0)
	// With several add-ons, each has waves of its own.
	r.Number(r.title+name+", clusters in flight at once", float64(seen.MaxReporting), 0, "", float64(r.Wave*r.Size.AddOns))
	return nil
}

// uninstall removes the placement from all add-ons, and waits until nothing of them is left.
func (r *run) uninstall(ctx context.Context) error {
	limits := r.budgeted(budget{took: 5 * time.Second})
	_, err := r.measured(ctx, "uninstall", r.Size.all(), limits, func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		for i := range r.Size.AddOns {
			err := r.edit(ctx, addOnName(i), func(cma *addonv1alpha1.ClusterManagementAddOn) {
				cma.Spec.InstallStrategy.Placements = nil
			})
			if err != nil {
				return 0, err
			}
		}
		if err := r.awaitGone(ctx, &addonv1alpha1.ManagedClusterAddOnList{}); err != nil {
			return 0, err
		}
		if err := r.awaitGone(ctx, &workv1.ManifestWorkList{}); err != nil {
			return 0, err
		}
		return time.Since(began), nil
	})
	return err
}

// restart starts the hub manager again with all add-ons in place.
func (r *run) restart(ctx context.Context) error { return r.start(ctx, "start") }

// replace starts the hub manager as a build of another version, as an upgrade does. It renders all add-ons, and must
// write nothing, as the code is the same.
func (r *run) replace(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "spokelet-bench-")
	if err != nil {
		return fmt.Errorf("making a directory for the program: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	source := "./cmd/spokelet-hub"
	if r.Profiles != "" {
		source = profiled
	}
	const version = "github.com/spokelet/spokelet/internal/version.version=another"
	err = fleet.Build(ctx, dir, map[string]string{"spokelet-hub": source}, "-ldflags", "-s -w -X "+version)
	if err != nil {
		return err
	}
	program := r.fleet.HubManager()
	former := program.Path
	program.Path = filepath.Join(dir, "spokelet-hub")
	// A further start would not find this build any more.
	defer func() { program.Path = former }()
	return r.start(ctx, "start of another version")
}

// start ends the hub manager, starts it, and measures until it is quiet.
func (r *run) start(ctx context.Context, title string) error {
	manager := r.fleet.HubManager()
	manager.Stop(stopGrace)
	before, err := r.audit.Of(managerUser())
	if err != nil {
		return err
	}
	began := time.Now()
	if err := manager.Start(); err != nil {
		return err
	}
	if err := begun(ctx, "the hub manager to begin", r.at, before); err != nil {
		return err
	}
	quiet, err := r.quietSince(ctx)
	if err != nil {
		return err
	}
	after, err := r.at()
	if err != nil {
		return err
	}
	limits := large(r.Size)
	r.Time(r.title+title+" of the hub manager until it is quiet", quiet.Sub(began), limits.start)
	sent := after.requests.Since(before)
	fmt.Fprintf(r.Log, "  the hub manager sent: %s\n", sent)
	r.Number(r.title+title+", requests", float64(sent.Count), 0, "", 0)
	r.Time(r.title+title+", processor", after.processor, 0)
	r.Number(r.title+title+", memory at most", after.memory/measure.Mebibyte, 0, " MiB", limits.peak())
	return nil
}

// begun waits until a process that was started watches anything. at returns what it has used so far, and before is what
// its user had sent before.
func begun(ctx context.Context, what string, at func() (cost, error), before measure.Requests) error {
	return fleet.Wait(ctx, what, nil, func(context.Context) error {
		now, err := at()
		if err == nil && len(now.requests.Since(before).Watches) == 0 {
			return fleet.NotYet("it watches nothing")
		}
		return err
	})
}

// stopGrace is how long the hub manager gets to end by itself.
const stopGrace = 5 * time.Second
