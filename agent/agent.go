package agent

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent/cluster"
	"github.com/spokelet/spokelet/agent/join"
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
	// host is the cluster that the agent runs on, spoke the managed cluster; outside hosted mode they are one. spokeRaw
	// is the file that spoke was read from in hosted mode.
	host, spoke *rest.Config
	hosted      bool
	spokeRaw    []byte
	// live reads from and writes to the host without a cache.
	live client.Client
	// health knows how the API server of the spoke is.
	health *cluster.Health
	clock  clock.WithDelayedExecution
	// hubTime knows what time it is at the hub.
	hubTime *hubTime
	// refused is the last credential that the hub answered nothing but 401 to; nil when there is none.
	refused atomic.Pointer[join.Credential]
}

// Run runs the agent until ctx ends, which is no error. An error is a configuration that can never work, and says what
// is wrong with it. Everything else, a bootstrap kubeconfig that is missing or broken too, is told and tried again.
// It turns the garbage collector up unless GOGC is set, and gives memory back when a burst of work is over unless the
// configuration says otherwise.
func Run(ctx context.Context, config Config) error {
	if err := config.Validate(); err != nil {
		return fmt.Errorf("the configuration cannot work:\n%w", err)
	}
	if os.Getenv("GOGC") == "" { //nolint:forbidigo // this is a composition root
		debug.SetGCPercent(gcPercent)
	}
	ctx = command.WithLogger(ctx, os.Stderr, config.Verbosity)
	if config.GiveBackMemory {
		config.WrapTransport = chain(newThrift(clock.RealClock{}, func() {
			if err := giveBack(); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "giving back memory")
			}
		}).wrap, config.WrapTransport)
	}
	a, err := newAgent(config)
	if err != nil {
		return err
	}
	for _, given := range config.idle {
		ctrl.LoggerFrom(ctx).Info("a flag has no effect", "flag", given.name, "reason", given.why)
	}
	ctx = withExplained(ctx, &a.state)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.state.serve(ctx, config.HealthAddress) })
	group.Go(func() error { return a.state.serveTLS(ctx, &config, a.clock) })
	group.Go(func() error { return a.lead(ctx) })
	return group.Wait()
}

func newAgent(config Config) (*agent, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	a := &agent{config: config, scheme: scheme, hosted: config.SpokeKubeconfig != "", clock: clock.RealClock{}}
	a.hubTime = &hubTime{clock: a.clock}
	if a.host, err = clientConfig(config.Kubeconfig, config.WrapTransport); err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	limit(a.host, config.SpokeQPS, config.SpokeBurst)
	if !a.hosted {
		// Before other clients are made of it, so that the traffic of all of them is watched.
		if err := a.useSpoke(a.host); err != nil {
			return nil, err
		}
	}
	if a.live, err = client.New(a.host, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("building the client of the cluster that the agent runs on: %w", err)
	}
	return a, nil
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
	own, err := identity()
	if err != nil {
		return err
	}
	e := election{
		Election: a.config.Election, client: leases, namespace: a.config.Namespace, leases: a.config.Duties.Leases(),
		identity: own, clock: a.clock, waits: func(text string) {
			if a.state.standBy(text) {
				ctrl.LoggerFrom(ctx).Info("waiting to lead", "reason", text)
			}
		},
	}
	return e.follow(ctx, a.runPhases)
}
