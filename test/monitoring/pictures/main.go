// Command pictures draws the dashboards for the documentation. It plays a fleet of package scene for a while, in which
// a rollout goes through and another one stops, an agent loses its hub, and works get into trouble. It scrapes the
// programs every thirty seconds, and draws each dashboard from what Prometheus' engine answers.
//
// Run it from test/monitoring: go run ./pictures. With -samples it keeps what was scraped, and draws that again
// when it is there already.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
	"github.com/spokelet/spokelet/test/monitoring/dashboards"
	"github.com/spokelet/spokelet/test/monitoring/dashboards/picture"
	"github.com/spokelet/spokelet/test/monitoring/harness"
	"github.com/spokelet/spokelet/test/monitoring/scene"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var o options
	flag.StringVar(&o.samples, "samples", "", "keep what was scraped in this directory, or draw what is in it")
	flag.StringVar(&o.root, "root", filepath.Join("..", ".."), "the root of the repository")
	flag.StringVar(&o.version, "version", "v1.0.0", "the version that the programs say")
	flag.DurationVar(&o.lasts, "lasts", 16*time.Minute, "how long the fleet plays")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	samples, root, version string
	lasts                  time.Duration
}

// folder has the pictures, below the root.
const folder = "docs/operations/images"

func (o options) run(ctx context.Context) error {
	work, err := os.MkdirTemp("", "spokelet-pictures-")
	if err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	return errors.Join(o.in(ctx, work), os.RemoveAll(work))
}

// in runs with a directory for what is not kept.
func (o options) in(ctx context.Context, work string) error {
	dir := o.samples
	if dir == "" {
		dir = filepath.Join(work, "samples")
	}
	known, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return fmt.Errorf("looking for samples: %w", err)
	}
	store, err := harness.Open(dir)
	if err != nil {
		return err
	}
	if len(known) == 0 {
		err = o.play(ctx, store, filepath.Join(work, "bin"))
	}
	if err == nil {
		err = o.draw(ctx, store)
	}
	return errors.Join(err, store.Close())
}

// play builds the programs, plays the fleet and stores what is scraped.
func (o options) play(ctx context.Context, store *harness.Store, binaries string) error {
	if err := fleet.Build(ctx, binaries, map[string]string{
		"spokelet": "./cmd/spokelet", "spokelet-hub": "./cmd/spokelet-hub",
	}, "-ldflags", "-X github.com/spokelet/spokelet/internal/version.version="+o.version); err != nil {
		return fmt.Errorf("building the programs: %w", err)
	}
	s, err := scene.Start(ctx, scene.Options{
		Binaries: binaries, Played: 38, Takes: 20 * time.Second, Wave: 4, Deadline: 45 * time.Second, Log: os.Stderr,
		Unready: map[string]string{"shop-021": "metrics:v1", "shop-033": "metrics:v1"},
	})
	if err != nil {
		return err
	}
	return errors.Join(s.Play(ctx, store, o.lasts), s.Close())
}

// draw draws all dashboards.
func (o options) draw(ctx context.Context, store *harness.Store) error {
	all, err := dashboards.Read(o.root)
	if err != nil {
		return err
	}
	first, last := store.Times()
	asker := dashboards.Asker{Store: store, Span: dashboards.Span{From: first, To: last, Step: harness.ScrapeEvery}}
	for _, d := range all {
		asker, err := asker.Choose(ctx, d, chosen(d.UID))
		if err != nil {
			return err
		}
		content, err := picture.Draw(ctx, asker, d, chosen(d.UID))
		if err != nil {
			return err
		}
		name := filepath.Join(o.root, folder, d.UID+".svg")
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return fmt.Errorf("writing a picture: %w", err)
		}
	}
	return nil
}

// chosen is what a person would choose on a dashboard.
func chosen(uid string) dashboards.Values {
	switch uid {
	case dashboard.Tag + "-addon":
		return dashboards.Values{"addon": "logs"}
	case dashboard.Tag + "-cluster":
		return dashboards.Values{"cluster": scene.First}
	}
	return nil
}
