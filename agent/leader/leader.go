// Package leader lets one agent of a cluster act at a time: it holds the Leases of OCM's agents, so that ours and
// theirs wait for each other, too, while one replaces the other.
package leader

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/internal/command"
)

// The Leases of OCM's agents in the namespace of the agent.
const (
	// LeaseAgent is held by an agent that does everything.
	LeaseAgent = "klusterlet-agent-lock"
	// LeaseRegistration is held by an agent that does registration.
	LeaseRegistration = "registration-agent-lock"
	// LeaseWork is held by an agent that does works.
	LeaseWork = "work-agent-lock"
)

// Leases returns the Leases to hold for the duties of an agent, in the order in which every agent acquires them. An
// agent that does everything also excludes those that do a part.
func Leases(registration, works bool) []string {
	switch {
	case registration && works:
		return []string{LeaseAgent, LeaseRegistration, LeaseWork}
	case registration:
		return []string{LeaseRegistration}
	}
	return []string{LeaseWork}
}

// vacantPeriod is the pause between two reads of a Lease that another process holds.
const vacantPeriod = 5 * time.Second

// Election lets one process at a time lead. All fields are required.
type Election struct {
	// Times are how long the Leases live. The renewals also show that the API server responds.
	Times command.Election
	// Client reads and writes Leases in Namespace.
	Client    coordinationv1client.LeasesGetter
	Namespace string
	// Pods reads the pods in Namespace, where an agent may.
	Pods corev1client.PodsGetter
	// Leases are the names of the Leases to hold, in the order in which they are acquired.
	Leases []string
	// Identity is the name of this process among the candidates.
	Identity string
	// Clock measures the pauses.
	Clock clock.Clock
	// Waiting is called with a description of the Lease that this process waits for.
	Waiting func(text string)
}

// Run runs lead whenever this process leads, until ctx ends or lead fails.
func (e Election) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	logger := ctrl.LoggerFrom(ctx)
	for ctx.Err() == nil {
		if err := e.hold(ctx, e.Leases, lead); err != nil {
			return err
		}
		if ctx.Err() == nil {
			logger.Info("lost the lead: a lease could not be renewed or another client took it")
		}
	}
	return nil
}

// hold acquires the Leases one after the other, holds all of them while lead runs, and releases them in reverse order.
func (e Election) hold(ctx context.Context, leases []string, lead func(ctx context.Context) error) error {
	if len(leases) == 0 {
		return lead(ctx)
	}
	if !e.vacant(ctx, leases[0]) {
		return nil
	}
	return e.acquire(ctx, leases[0], func(ctx context.Context) error { return e.hold(ctx, leases[1:], lead) })
}

// vacant waits until a Lease can be acquired, and reports whether it can: ctx may end before. It reads the Lease more
// often than the election would, so that one that was released is acquired soon. It releases a Lease in the place of
// its holder when that does not hold it any more.
func (e Election) vacant(ctx context.Context, name string) bool {
	var seen coordinationv1.LeaseSpec
	var since time.Time
	for {
		found, err := e.Client.Leases(e.Namespace).Get(ctx, name, metav1.GetOptions{})
		now := e.Clock.Now()
		if err == nil && (since.IsZero() || !sameTerm(seen, found.Spec)) {
			seen, since = found.Spec, now
		}
		holder := ptr.Deref(seen.HolderIdentity, "")
		switch {
		case apierrors.IsNotFound(err), err == nil && (holder == "" || holder == e.Identity):
			return true
		case err == nil && e.over(ctx, seen, now.Sub(since)):
			found.Spec.HolderIdentity = ptr.To("")
			if _, err = e.Client.Leases(e.Namespace).Update(ctx, found, metav1.UpdateOptions{}); err == nil {
				return true
			}
		}
		text := fmt.Sprintf("waiting to lead: Lease %s/%s is held by %s", e.Namespace, name, holder)
		if err != nil {
			text = fmt.Sprintf("waiting to lead: Lease %s/%s: %v", e.Namespace, name, err)
		}
		e.Waiting(text)
		timer := e.Clock.NewTimer(vacantPeriod)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C():
		}
	}
}

// sameTerm reports whether a Lease was neither renewed nor acquired between two reads.
func sameTerm(a, b coordinationv1.LeaseSpec) bool {
	return ptr.Equal(a.HolderIdentity, b.HolderIdentity) && a.RenewTime.Equal(b.RenewTime)
}

// acquire waits until this process holds a Lease, and calls lead with a context that ends when it loses the Lease. It
// returns after lead has returned and the Lease is released.
func (e Election) acquire(ctx context.Context, name string, lead func(ctx context.Context) error) error {
	leads := make(chan (<-chan struct{}), 1)
	elector, err := e.elector(name, leads)
	if err != nil {
		return err
	}
	// The process holds the Lease beyond ctx until lead has returned, so that no successor acts at the same time.
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
	case lost := <-leads:
		acting, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-lost:
				cancel()
			case <-acting.Done():
			}
		}()
		err = lead(acting)
	}
	stop()
	<-ended
	return err
}

// elector returns the election of a Lease. When this process holds it, leads gets a channel that is closed when it
// loses it.
func (e Election) elector(name string, leads chan<- (<-chan struct{})) (*leaderelection.LeaderElector, error) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: name,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: name},
			Client:     e.Client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.Identity},
		},
		LeaseDuration: e.Times.LeaseDuration, RenewDeadline: e.Times.RenewDeadline, RetryPeriod: e.Times.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { leads <- leading.Done() },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the leader election: %w", err)
	}
	return elector, nil
}
