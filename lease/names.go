package lease

import (
	"math"
	"time"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	// ClusterLease is the name of the heartbeat of a cluster in its namespace on the hub.
	ClusterLease = names.LeaseCluster
	// DefaultDuration is the time between two renewals where nothing else is asked for.
	DefaultDuration = 60 * time.Second
	// ClusterGraceFactor is how many durations a cluster may stay silent before it is called Unknown.
	ClusterGraceFactor = 5
	// AddonGrace is how long an add-on may stay silent before it is called unavailable.
	AddonGrace = 5 * DefaultDuration
)

// maxDuration keeps duration × ClusterGraceFactor inside what a time.Duration can hold.
const maxDuration = time.Duration(math.MaxInt64 / (2 * ClusterGraceFactor))

// ClusterDuration turns spec.leaseDurationSeconds of a ManagedCluster into a duration; what is not positive is
// DefaultDuration.
func ClusterDuration(leaseDurationSeconds int32) time.Duration {
	if leaseDurationSeconds <= 0 {
		return DefaultDuration
	}
	return min(time.Duration(leaseDurationSeconds)*time.Second, maxDuration)
}

// ClusterGrace is how long a cluster with this spec.leaseDurationSeconds may stay silent before the hub calls it
// Unknown.
func ClusterGrace(leaseDurationSeconds int32) time.Duration {
	return ClusterGraceFactor * ClusterDuration(leaseDurationSeconds)
}
