package cluster

import "github.com/spokelet/spokelet/internal/names"

// checkName says why no cluster of this name can be accepted; nil when it can. The admission policy of
// ManagedClusters asks the same when they are created.
func checkName(name string) error { return names.CheckCluster(name) }
