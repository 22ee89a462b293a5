package command

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/leaderelection"
)

// Election is how the replicas of a program elect a leader. A leader that ends releases its Lease at once; the Lease of
// one that died expires after LeaseDuration at the latest.
type Election struct {
	// LeaderElect makes a replica wait for the Lease before it acts.
	LeaderElect bool
	// LeaseDuration is how long after its last renewal a Lease expires, RenewDeadline how long a leader may fail to renew
	// it before it stops, RetryPeriod the pause between two renewals or attempts to acquire it.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// AddFlags binds the flags; their defaults are the values in e.
func (e *Election) AddFlags(f *pflag.FlagSet) {
	f.BoolVar(&e.LeaderElect, "leader-elect", e.LeaderElect, "wait for the leader lease before doing anything")
	f.BoolFunc("disable-leader-election", "the same as --leader-elect=false", func(value string) error {
		disabled, err := strconv.ParseBool(value)
		e.LeaderElect = e.LeaderElect && !disabled
		return err
	})
	AddElectionTimes(f, &e.LeaseDuration, &e.RenewDeadline, &e.RetryPeriod)
}

// AddElectionTimes binds the flags of the times of an Election; their defaults are the present values.
func AddElectionTimes(f *pflag.FlagSet, leaseDuration, renewDeadline, retryPeriod *time.Duration) {
	f.DurationVar(leaseDuration, "leader-election-lease-duration", *leaseDuration,
		"how long after its last renewal the lease of a leader that died expires")
	f.DurationVar(renewDeadline, "leader-election-renew-deadline", *renewDeadline,
		"how long a leader may fail to renew its lease before it stops, less than the duration of the lease")
	f.DurationVar(retryPeriod, "leader-election-retry-period", *retryPeriod,
		"pause between two renewals of the lease, or two attempts to acquire it")
}

// Validate returns why nobody could stay the leader; nil if one can.
func (e *Election) Validate() error {
	switch {
	case e.RetryPeriod <= 0:
		return fmt.Errorf("--leader-election-retry-period: %s must be above 0", e.RetryPeriod)
	case float64(e.RenewDeadline) <= leaderelection.JitterFactor*float64(e.RetryPeriod):
		return fmt.Errorf("--leader-election-renew-deadline: %s must be above %v times --leader-election-retry-period, %s",
			e.RenewDeadline, leaderelection.JitterFactor, e.RetryPeriod)
	case e.LeaseDuration <= e.RenewDeadline:
		return fmt.Errorf("--leader-election-lease-duration: %s must be above --leader-election-renew-deadline, %s",
			e.LeaseDuration, e.RenewDeadline)
	}
	return nil
}
