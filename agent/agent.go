package agent

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent/cluster"
	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// userAgent is how the agent calls itself. On the spoke it is also the field manager of what it applies, and so part
	// of the contract.
	userAgent = names.FieldManagerWork
	// gcPercent lets the heap grow by half between two collections: a small process is worth a little more CPU.
	gcPercent = 50
)

// agent is what lives as long as the process: configuration, clients of its own cluster, and the state it tells.
type agent struct {
	config Config
	scheme *runtime.Scheme
	state  state
	// host is the cluster that the agent runs on, spoke the managed cluster; outside hosted mode they are one.
	host, spoke *rest.Config
	hosted      bool
	// live reads from and writes to the host without a cache.
	live client.Client
	// health knows how the API server of the spoke is.
	health    *cluster.Health
	bootstrap bootstrapSource
	clock     clock.Clock
}

// Run runs the agent until ctx ends, which is no error. An error is a configuration that cannot work, and says what is
// wrong with it: everything else is logged and tried again. It turns the garbage collector up unless GOGC is set.
func Run(ctx context.Context, config Config) error {
	if err := config.Validate(); err != nil {
		return fmt.Errorf("the configuration cannot work:\n%w", err)
	}
	if os.Getenv("GOGC") == "" { //nolint:forbidigo // this is a composition root
		debug.SetGCPercent(gcPercent)
	}
	if config.BootstrapKubeconfig != "" {
		// Before any client: what a person has just typed is told before what may be wrong with the cluster.
		if err := checkBootstrap(ctx, bootstrapSource{file: config.BootstrapKubeconfig}, nil); err != nil {
			return err
		}
	}
	ctx = command.WithLogger(ctx, os.Stderr, config.Verbosity)
	a, err := newAgent(config)
	if err != nil {
		return err
	}
	if err := checkBootstrap(ctx, a.bootstrap, a.live); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.state.serve(ctx, config.HealthAddress) })
	group.Go(func() error { return a.lead(ctx) })
	return group.Wait()
}

func newAgent(config Config) (*agent, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	a := &agent{
		config: config, scheme: scheme, hosted: config.SpokeKubeconfig != "", clock: clock.RealClock{},
		bootstrap: bootstrapSource{
			file:   config.BootstrapKubeconfig,
			secret: types.NamespacedName{Namespace: config.Namespace, Name: config.BootstrapSecret},
		},
	}
	if a.host, err = clientConfig(config.Kubeconfig); err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	a.spoke = a.host
	if a.hosted {
		if a.spoke, err = clientConfig(config.SpokeKubeconfig); err != nil {
			return nil, fmt.Errorf("--spoke-kubeconfig: %w", err)
		}
		limit(a.host, config.SpokeQPS, config.SpokeBurst)
	}
	limit(a.spoke, config.SpokeQPS, config.SpokeBurst)
	if a.health, err = newHealth(a.spoke); err != nil {
		return nil, err
	}
	if a.live, err = client.New(a.host, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("building the client of the cluster that the agent runs on: %w", err)
	}
	return a, nil
}

// clientConfig reads a kubeconfig, or the service account of the pod when there is no path.
func clientConfig(path string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if path == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", path)
	}
	if err != nil {
		return nil, err
	}
	config.UserAgent = userAgent
	return config, nil
}

// newHealth wraps the configuration of the spoke so that all of the agent's traffic with it is watched, and returns
// what probes it.
func newHealth(spoke *rest.Config) (*cluster.Health, error) {
	traffic := &cluster.Traffic{}
	spoke.Wrap(traffic.Wrap)
	var err error
	var httpClient *http.Client
	if httpClient, err = rest.HTTPClientFor(spoke); err != nil {
		return nil, fmt.Errorf("building the client that probes the managed cluster: %w", err)
	}
	var address *url.URL
	if address, _, err = rest.DefaultServerURL(spoke.Host, "", schema.GroupVersion{}, true); err != nil {
		return nil, fmt.Errorf("reading the address of the managed cluster: %w", err)
	}
	return &cluster.Health{Client: httpClient, Server: address, Traffic: traffic}, nil
}

// checkBootstrap fails when there is a bootstrap kubeconfig and it can never work. A Secret that cannot be read now, as
// from a cluster that is not up, is tried again later.
func checkBootstrap(ctx context.Context, source bootstrapSource, live client.Reader) error {
	kubeconfig, err := source.read(ctx, live)
	if err != nil && source.file != "" {
		return err
	}
	if err != nil || kubeconfig == nil {
		return nil //nolint:nilerr // see above
	}
	_, err = source.parse(kubeconfig)
	return err
}

// lead runs the phases while this process is the one that may act.
func (a *agent) lead(ctx context.Context) error {
	if !a.config.LeaderElect {
		return a.runPhases(ctx)
	}
	leases, err := coordinationv1client.NewForConfig(a.host)
	if err != nil {
		return fmt.Errorf("building the client of the leader election: %w", err)
	}
	a.state.set("waiting to lead")
	return election{client: leases, namespace: a.config.Namespace}.follow(ctx, a.runPhases)
}
