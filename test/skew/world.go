package skew

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// addOnName is the name of the add-on, and of its objects.
	addOnName = "skew"
	// selected is the label of clusters that have the add-on.
	selected = "skew.example.com/addon"
	// ofAgent and ofAddOn are the owners of certificates.
	ofAgent, ofAddOn = "the agent", "the add-on"
	// lifetime is that of all certificates.
	lifetime = time.Minute
	// patience is how long a step may take: certificates are replaced twice in one of them.
	patience = 4 * time.Minute
	// every is how often the story looks.
	every = 250 * time.Millisecond
	// told is how many lines of a log are shown after a failure.
	told = 40
)

// addOnFile is the add-on as its author writes it.
//
//go:embed addon.yaml
var addOnFile string

// Options say what to run.
type Options struct {
	// Old and New are the two versions.
	Old, New fleet.Release
	// Dir receives logs and data, a folder for each path; empty means temporary ones.
	Dir string
	// Log receives what happens; nil drops it.
	Log io.Writer
}

// release returns one of the versions.
func (o Options) release(side Side) fleet.Release {
	if side == Old {
		return o.Old
	}
	return o.New
}

// world is a path that is walked.
type world struct {
	Options

	path     Path
	fleet    *fleet.Fleet
	kubelets *kubelets
	audits   measure.Audits
	report   Report
	// first is how all was when the add-on was installed, and order is the order in which agents are replaced.
	first map[string]Cluster
	order []string
}

// Run walks a path. The report is complete even when there is an error, which is one of the machine.
func Run(ctx context.Context, path Path, o Options) (Report, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	options := fleet.Options{
		Clusters: clusterNames(), Binaries: o.New.Binaries, Audit: true, SigningDuration: lifetime, Log: o.Log,
	}
	if o.Dir != "" {
		options.Dir = filepath.Join(o.Dir, path.Name)
	}
	f, err := fleet.New(ctx, options)
	if err != nil {
		return Report{Path: path}, err
	}
	w := &world{
		Options: o, path: path, fleet: f, kubelets: newKubelets(o.Log), order: clusterNames(), report: Report{Path: path},
	}
	w.audits = measure.Audits{fleet.HubName: measure.NewAudit(f.Hub.AuditLog())}
	played, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	for _, cluster := range f.Clusters() {
		w.audits[cluster.Name] = measure.NewAudit(cluster.ControlPlane.AuditLog())
		group.Go(func() { w.kubelets.serve(played, cluster) })
	}
	err = w.tell(ctx)
	stop()
	group.Wait()
	return w.report, errors.Join(err, f.Close())
}

func clusterNames() []string { return []string{"skew1", "skew2", "skew3"} }

// tell plays the story, step by step. A step that does not end is a violation, and the last one.
func (w *world) tell(ctx context.Context) error {
	for _, s := range steps() {
		began := time.Now()
		w.say("%s ...", s.name)
		bound, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %s", patience))
		err := s.do(w, bound)
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			w.violate("%s: %v", s.name, err)
			w.tellLogs()
			return nil
		}
		w.report.Steps = append(w.report.Steps, Step{Name: s.name, Took: time.Since(began)})
	}
	return nil
}

func (w *world) say(format string, args ...any) {
	fmt.Fprintf(w.Log, "%s %s: %s\n", time.Now().UTC().Format(time.TimeOnly), w.path.Name, fmt.Sprintf(format, args...))
}

func (w *world) violate(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	w.report.Violations = append(w.report.Violations, what)
	w.say("VIOLATION: %s", what)
}

// tellLogs shows the end of the logs of all programs.
func (w *world) tellLogs() {
	for _, p := range w.fleet.Processes() {
		lines := strings.SplitAfter(p.Log(), "\n")
		fmt.Fprintf(w.Log, "the end of the log of the %s:\n%s", p.Name, strings.Join(lines[max(0, len(lines)-told):], ""))
	}
}

// await looks until nothing is missing any more.
func (w *world) await(ctx context.Context, missing func(map[string]Cluster) []string) (map[string]Cluster, error) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var wrong []string
	for {
		seen, err := w.look(ctx)
		if err != nil && ctx.Err() == nil {
			wrong = []string{err.Error()}
		}
		if err == nil {
			if wrong = missing(seen); len(wrong) == 0 {
				return seen, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w; %s", context.Cause(ctx), strings.Join(wrong, "\n"))
		case <-ticker.C:
		}
	}
}

// hold looks for a while, in which a number of clusters must have a version, no more and no fewer.
func (w *world) hold(ctx context.Context, version string, clusters int, period time.Duration) error {
	for began := time.Now(); time.Since(began) < period; {
		seen, err := w.await(ctx, func(map[string]Cluster) []string { return nil })
		if err != nil {
			return err
		}
		if n := having(version, seen); n != clusters {
			return fmt.Errorf("%d clusters have version %s, and %d may", n, version, clusters)
		}
		if !fleet.Pause(ctx, every) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// at replaces the program that a moment has, where the path replaces any.
func (w *world) at(ctx context.Context, m moment) error {
	if !w.path.Replaced {
		return nil
	}
	release := w.release(w.path.last())
	n := replaces(m)
	if n < 0 {
		w.say("%s the hub manager becomes the %s one", m, w.path.last())
		return w.fleet.ReplaceHub(ctx, release)
	}
	w.say("%s the agent of %s becomes the %s one", m, w.order[n], w.path.last())
	return w.fleet.ReplaceAgent(ctx, release, w.fleet.Cluster(w.order[n]))
}
