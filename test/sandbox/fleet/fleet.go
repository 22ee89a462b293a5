package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/sandbox"
)

// HubName is the name of the hub's control plane.
const HubName = "hub"

// stopGrace is how long a program gets to end by itself.
const stopGrace = 5 * time.Second

// Options are the parts of a fleet.
type Options struct {
	// Clusters are the names of the managed clusters.
	Clusters []string
	// Binaries is the directory with spokelet and spokelet-hub; empty means bin below the module root.
	Binaries string
	// Dir holds logs, kubeconfigs and data of the fleet; empty means a temporary directory, removed by Close.
	Dir string
	// Assets is the directory with the control plane binaries, as in sandbox.Options.
	Assets string
	// Audit writes an audit log on each control plane, as in sandbox.Options.
	Audit bool
	// AuditPolicy and APIServerArgs are those of the hub, as in sandbox.Options.
	AuditPolicy   string
	APIServerArgs []string
	// LeasesApart and Stores are those of the hub, as in sandbox.Options.
	LeasesApart bool
	Stores      string
	// Admission names admission plugins to turn on, as in sandbox.Options.
	Admission []string
	// SigningDuration is the lifetime of the certificates that the hub signs, as in sandbox.Options.
	SigningDuration time.Duration
	// Link lets agents and add-ons reach the hub over a link that can be cut, see Fleet.Link.
	Link bool
	// FrontProxy is that of all control planes, as in sandbox.Options.
	FrontProxy bool
	// Samples is a file to which the fleet appends what its programs use, see Sample; empty writes none.
	Samples string
	// SampleEvery is how often it does; 0 means DefaultSampleEvery.
	SampleEvery time.Duration
	// Log receives what the fleet does; nil drops it.
	Log io.Writer
}

// Fleet is a hub and its managed clusters.
type Fleet struct {
	// Hub is the control plane of the hub.
	Hub *sandbox.ControlPlane
	// HubClient reads and writes the hub as an administrator.
	HubClient client.WithWatch
	// Host is the URL where the hub manager reaches the hub; empty is that of the control plane.
	Host string
	// Link is how agents reach the hub when the options ask for it; nil otherwise.
	Link *sandbox.Link

	opts     Options
	binaries string
	dir      string
	// janitor removes the directory when it is the fleet's own; nil otherwise.
	janitor  *sandbox.Janitor
	clusters map[string]*Cluster
	manager  *sandbox.Process
	// health is the port where the hub manager says that it is ready.
	health  int
	webhook webhookServing
	// sampler appends to the file of samples; nil without one.
	sampler *sampler

	mu        sync.Mutex
	processes []*sandbox.Process
	// metrics are the URLs where programs of ours say what they count.
	metrics map[*sandbox.Process]string
}

// Cluster is one managed cluster of a fleet.
type Cluster struct {
	// Name is the name under which the cluster joins.
	Name string
	// ControlPlane is the cluster itself.
	ControlPlane *sandbox.ControlPlane
	// Client reads and writes the cluster as an administrator.
	Client client.Client
	// Host is the URL where the agent reaches the cluster; empty is that of the control plane.
	Host string
	// HubHost is the URL where its agent and add-ons reach the hub; empty is the link of the fleet, or the control plane.
	HubHost string
	// Agent is the process of our agent; nil until StartAgent.
	Agent *sandbox.Process
}

// Scheme returns a scheme with all kinds that hub and clusters serve.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addonv1alpha1.Install, addonv1beta1.Install, clusterv1.Install,
		clusterv1alpha1.Install, clusterv1beta1.Install, clusterv1beta2.Install, workv1.Install,
		policies.Install,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// New starts the control planes of a fleet, all at once, and nothing else. The caller must call Close.
func New(ctx context.Context, opts Options) (*Fleet, error) {
	binaries, err := findBinaries(opts.Binaries)
	if err != nil {
		return nil, err
	}
	f := &Fleet{
		opts: opts, binaries: binaries, dir: opts.Dir, clusters: map[string]*Cluster{},
		metrics: map[*sandbox.Process]string{},
	}
	if f.opts.Log == nil {
		f.opts.Log = io.Discard
	}
	if f.dir == "" {
		dir, err := os.MkdirTemp("", "spokelet-fleet-")
		if err != nil {
			return nil, fmt.Errorf("making a directory for the fleet: %w", err)
		}
		f.dir = dir
		if f.janitor, err = sandbox.StartJanitor(dir); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the fleet: %w", err)
	}
	if err := f.startControlPlanes(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := f.startSampling(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Fleet) startControlPlanes(ctx context.Context) error {
	names := append([]string{HubName}, f.opts.Clusters...)
	planes := make([]*sandbox.ControlPlane, len(names))
	var group errgroup.Group
	for i, name := range names {
		group.Go(func() error {
			options := sandbox.Options{
				Name: name, Dir: filepath.Join(f.dir, name), Assets: f.opts.Assets, Audit: f.opts.Audit,
				Managed: i > 0, Admission: f.opts.Admission, FrontProxy: f.opts.FrontProxy, Log: f.opts.Log,
			}
			if i == 0 {
				options.SigningDuration = f.opts.SigningDuration
				options.AuditPolicy, options.APIServerArgs = f.opts.AuditPolicy, f.opts.APIServerArgs
				options.LeasesApart, options.Stores = f.opts.LeasesApart, f.opts.Stores
			}
			if f.opts.Samples != "" {
				options.APIServerArgs = append(slices.Clone(options.APIServerArgs), sampledAPIServerArgs...)
				options.StoreArgs = sampledStoreArgs
			}
			plane, err := sandbox.Start(ctx, options)
			planes[i] = plane
			return err
		})
	}
	failed := group.Wait()
	for i, plane := range planes {
		if plane == nil {
			continue
		}
		admin, err := client.NewWithWatch(plane.Admin(), client.Options{Scheme: Scheme()})
		failed = errors.Join(failed, err)
		if i == 0 {
			f.Hub, f.HubClient = plane, admin
			continue
		}
		f.clusters[names[i]] = &Cluster{Name: names[i], ControlPlane: plane, Client: admin}
	}
	if failed == nil && f.opts.Link {
		f.Link, failed = sandbox.NewLink(f.Hub.Host)
	}
	return failed
}

// Cluster returns the managed cluster of that name; it panics when the fleet has none, which is a mistake in a test.
func (f *Fleet) Cluster(name string) *Cluster {
	cluster, ok := f.clusters[name]
	if !ok {
		panic("the fleet has no cluster " + name)
	}
	return cluster
}

// Loopback returns the hub as a managed cluster of that name, for a hub that manages itself.
func (f *Fleet) Loopback(name string) *Cluster {
	return &Cluster{Name: name, ControlPlane: f.Hub, Client: f.HubClient}
}

// Clusters returns the managed clusters in the order of the options.
func (f *Fleet) Clusters() []*Cluster {
	all := make([]*Cluster, 0, len(f.clusters))
	for _, name := range f.opts.Clusters {
		all = append(all, f.clusters[name])
	}
	return all
}

// Dir returns the directory with logs and kubeconfigs.
func (f *Fleet) Dir() string { return f.dir }

// Kubeconfig writes a kubeconfig for cfg into the fleet's directory and returns its path.
func (f *Fleet) Kubeconfig(plane *sandbox.ControlPlane, cfg *rest.Config, name string) (string, error) {
	data, err := plane.Kubeconfig(cfg)
	if err != nil {
		return "", fmt.Errorf("building kubeconfig %s: %w", name, err)
	}
	path := filepath.Join(f.dir, name+".kubeconfig")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("writing kubeconfig %s: %w", name, err)
	}
	return path, nil
}

// Close ends all processes and control planes and removes the directory unless it was given.
func (f *Fleet) Close() error {
	sampled := f.sampler.stop()
	var group errgroup.Group
	for _, process := range f.Processes() {
		group.Go(func() error { process.Stop(stopGrace); return nil })
	}
	err := errors.Join(sampled, group.Wait())
	if f.Link != nil {
		f.Link.Close()
	}
	if f.Hub != nil {
		group.Go(func() error { f.Hub.Stop(); return nil })
	}
	for _, cluster := range f.clusters {
		group.Go(func() error { cluster.ControlPlane.Stop(); return nil })
	}
	err = errors.Join(err, group.Wait())
	if f.janitor != nil {
		err = errors.Join(err, f.janitor.Finish())
	}
	return err
}

// Processes returns all programs that were started, in the order of their start.
func (f *Fleet) Processes() []*sandbox.Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*sandbox.Process(nil), f.processes...)
}
