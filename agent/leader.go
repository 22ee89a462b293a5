package agent

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// LeaderLease is the Lease in the agent's namespace that the one agent that acts holds.
const LeaderLease = "spokelet-agent-lock"

// The times of the leader election. A leader that ends releases the lease at once; one that dies is followed after
// leaseDuration at the latest. The renewals, every retryPeriod, are also what tells the agent that its API server is
// there.
const (
	leaseDuration = 60 * time.Second
	renewDeadline = 45 * time.Second
	retryPeriod   = 10 * time.Second
)

// election lets one agent at a time act.
type election struct {
	client    coordinationv1client.CoordinationV1Interface
	namespace string
}

// run waits until this process leads and calls lead with a context that ends when it does not lead any more. It returns
// when lead has, after the lease was released.
func (e election) run(ctx context.Context, lead func(ctx context.Context) error) error {
	leads := make(chan context.Context, 1)
	elector, err := e.elector(leads)
	if err != nil {
		return err
	}
	// The lease must outlive ctx until lead has ended, so that no successor acts while this process still does.
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	select {
	case <-ctx.Done():
	case <-ended:
	case leading := <-leads:
		acting, cancel := context.WithCancel(leading)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		err = lead(acting) //nolint:contextcheck // acting ends with ctx as well as with the lead
	}
	stop()
	<-ended
	return err
}

func (e election) elector(leads chan<- context.Context) (*leaderelection.LeaderElector, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("looking up the host name: %w", err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: LeaderLease,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.namespace, Name: LeaderLease},
			Client:     e.client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { leads <- leading },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the leader election: %w", err)
	}
	return elector, nil
}

// follow runs lead whenever this process leads, until ctx ends or lead fails.
func (e election) follow(ctx context.Context, lead func(ctx context.Context) error) error {
	logger := ctrl.LoggerFrom(ctx)
	for ctx.Err() == nil {
		logger.Info("waiting to lead", "lease", e.namespace+"/"+LeaderLease)
		if err := e.run(ctx, lead); err != nil {
			return err
		}
		if ctx.Err() == nil {
			logger.Info("lost the lead: the lease could not be renewed or somebody else took it")
		}
	}
	return nil
}
