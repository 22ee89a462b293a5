package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// Options are the parts of a fleet.
type Options struct {
	// Clusters are the names of the managed clusters.
	Clusters []string
	// Loopback is a name under which the hub is a managed cluster, too; empty for none.
	Loopback string
	// Labels are those of the clusters on the hub.
	Labels map[string]string
	// Binaries is a directory with spokelet and spokelet-hub, see Build.
	Binaries string
	// SigningDuration is the lifetime of the certificates that the hub signs, on top of five minutes by which its
	// controllers date them back; zero is a year.
	SigningDuration time.Duration
	// HubArgs are further arguments of the hub manager, and AgentArgs of each agent.
	HubArgs, AgentArgs []string
	// Log receives what the fleet does; nil drops it.
	Log io.Writer
}

// Fleet is a hub with its managed clusters, whose programs serve metrics.
type Fleet struct {
	*fleet.Fleet

	clusters []*fleet.Cluster
	links    map[string]*sandbox.Link

	mu      sync.Mutex
	targets []Target
}

// Build builds our programs into a directory.
func Build(ctx context.Context, dir string) error {
	return fleet.Build(ctx, dir, map[string]string{"spokelet": "./cmd/spokelet", "spokelet-hub": "./cmd/spokelet-hub"})
}

// Start starts a fleet and returns when all its clusters are available. The hub manager elects a leader, as one that
// is installed does. The caller must call Close.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	started, err := fleet.New(ctx, fleet.Options{
		Clusters: o.Clusters, Binaries: o.Binaries, SigningDuration: o.SigningDuration, Log: o.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("starting a fleet: %w", err)
	}
	f := &Fleet{Fleet: started, links: map[string]*sandbox.Link{}}
	if err := f.install(ctx, o); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// install starts the programs and lets the clusters join.
func (f *Fleet) install(ctx context.Context, o Options) error {
	address, err := f.serve(Target{Labels: map[string]string{
		"job": "spokelet-hub", "namespace": names.NamespaceHub, "pod": "spokelet-hub-0", "container": "spokelet-hub",
	}})
	if err != nil {
		return err
	}
	args := append([]string{
		"--leader-elect=true", "--namespace=" + names.NamespaceHub, address,
		// One that was killed leads again soon.
		"--leader-election-lease-duration=5s", "--leader-election-renew-deadline=4s", "--leader-election-retry-period=1s",
	}, o.HubArgs...)
	if err := f.InstallHub(ctx, nil, args...); err != nil {
		return fmt.Errorf("installing the hub: %w", err)
	}
	f.clusters = f.Fleet.Clusters()
	if o.Loopback != "" {
		f.clusters = append(f.clusters, f.Loopback(o.Loopback))
	}
	for _, cluster := range f.clusters {
		if err := f.startAgent(ctx, cluster, o); err != nil {
			return err
		}
	}
	for _, cluster := range f.clusters {
		if err := f.Accept(ctx, cluster.Name, o.Labels); err != nil {
			return fmt.Errorf("accepting a cluster: %w", err)
		}
	}
	for _, cluster := range f.clusters {
		if err := f.WaitAvailable(ctx, cluster, nil); err != nil {
			return err
		}
	}
	return nil
}

// startAgent starts the agent of a cluster, which reaches the hub over a link of its own.
func (f *Fleet) startAgent(ctx context.Context, cluster *fleet.Cluster, o Options) error {
	link, err := sandbox.NewLink(f.Hub.Host)
	if err != nil {
		return fmt.Errorf("linking cluster %s to the hub: %w", cluster.Name, err)
	}
	f.links[cluster.Name], cluster.HubHost = link, link.Host
	address, err := f.serve(Target{Labels: map[string]string{
		"job": "klusterlet-agent", "namespace": names.NamespaceAgent, "pod": "klusterlet-agent-0",
		"container": "klusterlet-agent", "cluster": cluster.Name,
	}})
	if err != nil {
		return err
	}
	if err := f.StartAgent(ctx, cluster, append([]string{address}, o.AgentArgs...)...); err != nil {
		return fmt.Errorf("starting the agent of cluster %s: %w", cluster.Name, err)
	}
	return nil
}

// Clusters returns all managed clusters, the hub among them if it is one.
func (f *Fleet) Clusters() []*fleet.Cluster { return f.clusters }

// Value adds up what the programs serve now of a metric, with labels as in {kind="agent"} of PromQL. It is for a test
// that waits until programs noticed something, and stores nothing.
func (f *Fleet) Value(ctx context.Context, selector string) (float64, error) {
	matchers, err := Parser().ParseMetricSelector(selector)
	if err != nil {
		return 0, fmt.Errorf("parsing selector %s: %w", selector, err)
	}
	sum, found := 0.0, false
	for _, target := range f.Targets() {
		for _, one := range read(ctx, target) {
			if matches(one, matchers) {
				sum, found = sum+one.value, true
			}
		}
	}
	if !found {
		return 0, fmt.Errorf("%w: no program serves %s", fleet.ErrNotYet, selector)
	}
	return sum, nil
}

// matches reports whether a sample has the labels.
func matches(one sample, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(one.labels.Get(m.Name)) {
			return false
		}
	}
	return true
}

// Link returns how the agent of a cluster reaches the hub.
func (f *Fleet) Link(cluster string) *sandbox.Link { return f.links[cluster] }

// Targets returns the programs to scrape. The agents have the label cluster, which a Prometheus on each cluster would
// add as an external label.
func (f *Fleet) Targets() []Target {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Target(nil), f.targets...)
}

// serve adds a target at a free port, and returns the argument with which its program serves metrics there.
func (f *Fleet) serve(target Target) (string, error) {
	ports, err := sandbox.FreePorts(1)
	if err != nil {
		return "", fmt.Errorf("looking for a port for metrics: %w", err)
	}
	address := "127.0.0.1:" + strconv.Itoa(ports[0])
	target.URL, target.Labels["instance"] = "http://"+address+"/metrics", address
	f.mu.Lock()
	defer f.mu.Unlock()
	f.targets = append(f.targets, target)
	return "--metrics-bind-address=" + address, nil
}

// Close ends the fleet.
func (f *Fleet) Close() error {
	err := f.Fleet.Close()
	for _, link := range f.links {
		link.Close()
	}
	if err != nil {
		return fmt.Errorf("ending the fleet: %w", err)
	}
	return nil
}
