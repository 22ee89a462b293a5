package agent

import (
	"context"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The Leases of OCM's agents in the namespace of the agent. Ours hold the same ones, so that only one of all agents
// acts while one replaces the other.
const (
	// LeaseAgent is held by an agent that does everything.
	LeaseAgent = "klusterlet-agent-lock"
	// LeaseRegistration is held by who does registration.
	LeaseRegistration = "registration-agent-lock"
	// LeaseWork is held by who does works.
	LeaseWork = "work-agent-lock"
)

// Leases are the Leases to hold for the duties, in the order in which everybody takes them. An agent that does
// everything also keeps out those that do a part.
func (d Duties) Leases() []string {
	switch {
	case d.Registration && d.Works:
		return []string{LeaseAgent, LeaseRegistration, LeaseWork}
	case d.Registration:
		return []string{LeaseRegistration}
	}
	return []string{LeaseWork}
}

// Election are the times of a leader election. A leader that ends releases its Leases at once; one that dies is
// followed after LeaseDuration at the latest. The renewals, every RetryPeriod, also show that the API server is there.
type Election struct {
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// DefaultElection returns the times of OCM's agents.
func DefaultElection() Election {
	return Election{LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second}
}

// vacantPeriod is the pause between two looks at a Lease that another one holds.
const vacantPeriod = 5 * time.Second

// election lets one agent at a time act.
type election struct {
	Election
	client    coordinationv1client.CoordinationV1Interface
	namespace string
	leases    []string
	// identity is who this process is among those that want the Leases.
	identity string
	clock    clock.Clock
	// waits takes what is waited for, in words.
	waits func(text string)
}

// identity returns the name of this process for its Leases. A pod that knows its name keeps it when its container is
// restarted: the process before it is dead, so its Leases need not run out.
func identity() (string, error) {
	if pod := os.Getenv("POD_NAME"); pod != "" { //nolint:forbidigo // read once, in a composition root
		return pod, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("looking up the host name: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// follow runs lead whenever this process leads, until ctx ends or lead fails.
func (e election) follow(ctx context.Context, lead func(ctx context.Context) error) error {
	logger := ctrl.LoggerFrom(ctx)
	for ctx.Err() == nil {
		if err := e.hold(ctx, e.leases, lead); err != nil {
			return err
		}
		if ctx.Err() == nil {
			logger.Info("lost the lead: a lease could not be renewed or somebody else took it")
		}
	}
	return nil
}

// hold takes the Leases one after the other, holds them all while lead runs, and releases them in the reverse order.
func (e election) hold(ctx context.Context, leases []string, lead func(ctx context.Context) error) error {
	if len(leases) == 0 {
		return lead(ctx)
	}
	if err := e.vacant(ctx, leases[0]); err != nil {
		return nil //nolint:nilerr // ctx is over
	}
	return e.run(ctx, leases[0], func(ctx context.Context) error { return e.hold(ctx, leases[1:], lead) })
}

// vacant waits until a Lease can be taken, and looks more often than the election would, so that a Lease that was
// released is taken soon. One that has not been renewed for as long as it says is released in the place of its holder.
func (e election) vacant(ctx context.Context, name string) error {
	var seen coordinationv1.LeaseSpec
	var since time.Time
	for {
		found, err := e.client.Leases(e.namespace).Get(ctx, name, metav1.GetOptions{})
		now := e.clock.Now()
		if err == nil && (since.IsZero() || !sameTerm(seen, found.Spec)) {
			seen, since = found.Spec, now
		}
		holder := ptr.Deref(seen.HolderIdentity, "")
		switch {
		case apierrors.IsNotFound(err), err == nil && (holder == "" || holder == e.identity):
			return nil
		case err == nil && since.Add(time.Duration(ptr.Deref(seen.LeaseDurationSeconds, 0))*time.Second).Before(now):
			found.Spec.HolderIdentity = ptr.To("")
			if _, err = e.client.Leases(e.namespace).Update(ctx, found, metav1.UpdateOptions{}); err == nil {
				return nil
			}
		}
		text := fmt.Sprintf("waiting to lead: Lease %s/%s is held by %s", e.namespace, name, holder)
		if err != nil {
			text = fmt.Sprintf("waiting to lead: Lease %s/%s: %v", e.namespace, name, err)
		}
		e.waits(text)
		timer := e.clock.NewTimer(vacantPeriod)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C():
		}
	}
}

// sameTerm reports whether a Lease was not renewed or taken between two looks.
func sameTerm(a, b coordinationv1.LeaseSpec) bool {
	return ptr.Equal(a.HolderIdentity, b.HolderIdentity) && a.RenewTime.Equal(b.RenewTime)
}

// run waits until this process holds a Lease and calls lead with a context that ends when it does not hold it any more.
// It returns when lead has, after the Lease was released.
func (e election) run(ctx context.Context, name string, lead func(ctx context.Context) error) error {
	leads := make(chan context.Context, 1)
	elector, err := e.elector(name, leads)
	if err != nil {
		return err
	}
	// The Lease must outlive ctx until lead has ended, so that no successor acts while this process still does.
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

func (e election) elector(name string, leads chan<- context.Context) (*leaderelection.LeaderElector, error) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: name,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.namespace, Name: name},
			Client:     e.client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.identity},
		},
		LeaseDuration: e.LeaseDuration, RenewDeadline: e.RenewDeadline, RetryPeriod: e.RetryPeriod, ReleaseOnCancel: true,
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
