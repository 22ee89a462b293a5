package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sync/errgroup"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spokelet/spokelet/agent/bootstrap"
	"github.com/spokelet/spokelet/agent/hubconn"
	"github.com/spokelet/spokelet/agent/leader"
	"github.com/spokelet/spokelet/agent/work/latency"
	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/expiry"
	"github.com/spokelet/spokelet/internal/memory"
	"github.com/spokelet/spokelet/internal/roundtrip"
)

// Run runs the agent until ctx ends, which is not an error. It returns an error only for a configuration that can never
// work. It reports and retries everything else, a bootstrap kubeconfig that is missing or broken, too. Run makes the
// garbage collector run more often unless GOGC is set, and keeps it below the limit of the container.
func Run(ctx context.Context, config Config) error {
	if err := config.Validate(); err != nil {
		return fmt.Errorf("the configuration cannot work:\n%w", err)
	}
	if command.Environment("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx = command.WithLogger(ctx, os.Stderr, config.Verbosity)
	if err := command.Agent.Tell(ctx, metrics.Registry); err != nil {
		return err
	}
	memory.SetLimit(ctrl.LoggerFrom(ctx))
	config.WrapTransport = roundtrip.Chain(roundtrip.Bound(roundtrip.Silence), config.WrapTransport)
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 { // What fills the half alone cannot be decoded.
		config.WrapTransport = roundtrip.Chain(roundtrip.Limit(limit/2), config.WrapTransport)
	}
	if config.GiveBackMemory {
		config.WrapTransport = roundtrip.Chain(memory.NewReleaser(clock.RealClock{}).Wrap, config.WrapTransport)
	}
	a, err := newAgent(config)
	if err != nil {
		return err
	}
	a.objects.Logger = ctrl.LoggerFrom(ctx)
	config.foreign.Log(ctx)
	a.state.Note("settings", strings.Join(config.foreign.Lines(), "; "))
	if err := errors.Join(config.foreign.Count(metrics.Registry), a.state.Count(metrics.Registry)); err != nil {
		return err
	}
	ctx = withoutOutages(ctx, a.state.Explains)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.state.Serve(ctx, config.HealthAddress) })
	group.Go(func() error { return a.state.ServeTLS(ctx, config.healthTLS(), a.clock) })
	group.Go(func() error { return a.lead(ctx) })
	group.Go(func() error {
		config.foreign.Tell(ctx, a.host, config.foreign.Event("spokelet-agent", config.Namespace, a.clock.Now()))
		return nil
	})
	return group.Wait()
}

func newAgent(config Config) (*agent, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	a := &agent{config: config, scheme: scheme, clock: clock.RealClock{}}
	if a.objects, err = decode.New(scheme, a.clock, metrics.Registry); err != nil {
		return nil, err
	}
	a.state.Undecodable = a.objects.Bad
	if config.Gates.ApplyLatency {
		a.latency = latency.New(os.Stdout, a.clock)
	}
	a.hubClock = hubconn.NewClock(a.clock)
	if a.certificates, err = expiry.New(metrics.Registry, a.hubClock); err != nil {
		return nil, err
	}
	a.selector = &bootstrap.Selector{Scheme: scheme, Wrap: config.WrapTransport}
	if a.host, err = clientConfig(config.Kubeconfig, config.WrapTransport); err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	limit(a.host, config.SpokeQPS, config.SpokeBurst)
	if !a.hosted() {
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
	pods, err := corev1client.NewForConfig(a.host)
	if err != nil {
		return fmt.Errorf("building the client of the pods of other agents: %w", err)
	}
	own, err := command.Identity()
	if err != nil {
		return err
	}
	duties := a.config.Duties
	e := leader.Election{
		Times: a.config.Election, Client: leases, Namespace: a.config.Namespace, Pods: pods,
		Leases: leader.Leases(duties.Registration, duties.Works), Identity: own, Clock: a.clock,
		Waiting: func(text string) {
			if a.state.StandBy(text) {
				ctrl.LoggerFrom(ctx).Info("waiting to lead", "reason", text)
			}
		},
	}
	return e.Run(ctx, a.runPhases)
}
