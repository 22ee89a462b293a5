package lease

import (
	"math"
	"time"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	// ClusterLease is the name of the heartbeat of a cluster in its namespace on the hub.
	ClusterLease = names.LeaseCluster
	// DefaultDuration is the default time between two renewals.
	DefaultDuration = 60 * time.Second
	// ClusterGraceFactor is the number of durations without a renewal after which a cluster becomes Unknown.
	ClusterGraceFactor = 5
	// AddonGrace is the time without a renewal after which an add-on becomes unavailable.
	AddonGrace = 5 * DefaultDuration
)

// maxDuration keeps duration × ClusterGraceFactor within the range of time.Duration.
const maxDuration = time.Duration(math.MaxInt64 / (2 * ClusterGraceFactor))

// ClusterDuration converts spec.leaseDurationSeconds of a ManagedCluster; zero and negative values become
// DefaultDuration.
func ClusterDuration(leaseDurationSeconds int32) time.Duration {
	if leaseDurationSeconds <= 0 {
		return DefaultDuration
	}
	return min(time.Duration(leaseDurationSeconds)*time.Second, maxDuration)
}

// ClusterGrace is the time without a renewal after which a cluster with this spec.leaseDurationSeconds becomes Unknown.
func ClusterGrace(leaseDurationSeconds int32) time.Duration {
	return ClusterGraceFactor * ClusterDuration(leaseDurationSeconds)
}
