package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spokelet/spokelet/test/e2e/cluster"
)

// Options are how suites are played.
type Options struct {
	// Run is the random part of the names of this run.
	Run string
	// Dir is the folder of the run: kubeconfigs, overlays, the log of kind, exported logs.
	Dir string
	// Manifests is the folder manifests/ of the repository.
	Manifests string
	// NodeImage is the image of all nodes; empty means the official one.
	NodeImage string
	// Images are the images that are loaded into the clusters.
	Images Images
	// Only are words of which one is in the name of each scenario that is played; empty means all.
	Only []string
	// Outage is how long the hub is away where a scenario takes it away.
	Outage time.Duration
	// Out receives the progress.
	Out io.Writer
}

// Images are our images.
type Images struct {
	// Files are tar files, as "docker save" writes them.
	Files []string
	// Tag is the tag that is installed, NextTag the one of another build, for upgrades.
	Tag, NextTag string
	// Workload is the image of a program for pods of add-ons, with its tag.
	Workload string
	// Neighbour is the image of the programs of the add-ons of suite neighbours, with its tag.
	Neighbour string
	// Samples are the images of the sample add-ons, as Files, for the suites that use them.
	Samples []string
	// Programs are the programs of the sample add-ons that run on the hub, by the names of the add-ons.
	Programs map[string]string
}

// Play plays a suite and returns what became of its scenarios. Its clusters are deleted, whatever happens, and their
// logs are exported when a scenario failed. An error is one of the machinery, such as a cluster that could not be
// deleted.
func Play(ctx context.Context, s *Suite, o Options) (results []Result, err error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	o.Dir = filepath.Join(o.Dir, s.Name)
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of suite %s: %w", s.Name, err)
	}
	log, err := os.Create(filepath.Join(o.Dir, "kind.log"))
	if err != nil {
		return nil, fmt.Errorf("creating the log of kind: %w", err)
	}
	defer log.Close()
	fleet := newFleet(s, o, log)
	defer func() {
		if failed(results) || err != nil {
			err = errors.Join(err, fleet.exportLogs())
		}
		err = errors.Join(err, fleet.delete())
	}()
	started := time.Now()
	err = fleet.create(ctx)
	results = append(results, Result{
		Suite: s.Name, Name: "create-clusters", Took: time.Since(started), Err: err,
		Notes: []string{fmt.Sprintf("%d clusters at the same time", len(s.Clusters))},
	})
	results[0].print(o.Out)
	if err != nil {
		return results, nil
	}
	return append(results, playAll(ctx, s.Name, s.Select(o.Only), fleet, o.Out)...), nil
}

// playAll plays scenarios one after the other.
func playAll(ctx context.Context, suite string, scenarios []Scenario, fleet *Fleet, out io.Writer) []Result {
	passed := map[string]bool{}
	var results []Result
	for _, scenario := range scenarios {
		result := Result{Suite: suite, Name: scenario.Name, Doc: scenario.Doc}
		for _, need := range scenario.Needs {
			if !passed[need] {
				result.Skipped = fmt.Sprintf("%s did not pass", need)
			}
		}
		if ctx.Err() != nil {
			result.Skipped = "the run was ended"
		}
		if result.Skipped == "" {
			session := &Session{Fleet: fleet}
			fmt.Fprintf(out, "%s %-10s %s/%s: %s\n", time.Now().UTC().Format(time.TimeOnly), "playing", suite, scenario.Name,
				scenario.Doc)
			started := time.Now()
			result.Err = session.play(ctx, scenario)
			result.Took, result.Notes = time.Since(started), session.notes
		}
		passed[scenario.Name] = result.passed()
		result.print(out)
		results = append(results, result)
	}
	return results
}

// create creates all clusters at the same time, and loads the images.
func (f *Fleet) create(ctx context.Context) error {
	if err := cluster.CheckLimits(ctx, len(f.clusters)); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range f.clusters {
		group.Go(func() error {
			if err := c.Create(ctx); err != nil {
				return err
			}
			for _, file := range f.files {
				if err := c.LoadImage(file); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// delete deletes all clusters.
func (f *Fleet) delete() error {
	var errs []error
	for _, c := range f.clusters {
		errs = append(errs, c.Delete())
	}
	return errors.Join(errs...)
}

// exportLogs exports the logs of all clusters.
func (f *Fleet) exportLogs() error {
	dir := filepath.Join(f.options.Dir, "logs")
	fmt.Fprintf(f.options.Out, "exporting logs to %s\n", dir)
	var errs []error
	for _, c := range f.clusters {
		errs = append(errs, c.ExportLogs(dir), dumpObjects(c, dir))
	}
	return errors.Join(errs...)
}

// newFleet names the clusters of a suite.
func newFleet(s *Suite, o Options, log io.Writer) *Fleet {
	f := &Fleet{options: o, clusters: map[Role]*cluster.Cluster{}, files: o.Images.Files}
	if s.Samples {
		f.files = slices.Concat(f.files, o.Images.Samples)
	}
	for _, spec := range s.Clusters {
		f.clusters[spec.Role] = cluster.New(cluster.Options{
			Name:      fmt.Sprintf("%s%s-%s-%s", cluster.Prefix, o.Run, s.Name, spec.Role),
			NodeImage: o.NodeImage, Dir: o.Dir, SigningDuration: spec.SigningDuration, SecretSync: spec.SecretSync, Log: log,
		})
	}
	return f
}
