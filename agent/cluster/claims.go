package cluster

import (
	"cmp"
	"slices"
	"strings"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

const (
	// labelSpokeOnly on a ClusterClaim keeps it on the spoke; its value does not matter.
	labelSpokeOnly = "open-cluster-management.io/spoke-only"
	// DefaultMaxCustomClaims is how many claims besides the reserved ones are reported.
	DefaultMaxCustomClaims = 20
)

// ClaimRules says which claims are reported.
type ClaimRules struct {
	// MaxCustom is the number of claims that are reported besides the reserved ones.
	MaxCustom int
	// ReservedSuffixes are endings of names that are reserved besides the names of the cluster API.
	ReservedSuffixes []string
}

// report turns the ClusterClaims of the spoke into the claims of the ManagedCluster: the reserved ones first, then the
// others up to the limit, each part ordered by name.
func (r ClaimRules) report(claims []clusterv1alpha1.ClusterClaim) []clusterv1.ManagedClusterClaim {
	var reserved, custom []clusterv1.ManagedClusterClaim
	for i := range claims {
		claim := &claims[i]
		if _, hidden := claim.Labels[labelSpokeOnly]; hidden {
			continue
		}
		reported := clusterv1.ManagedClusterClaim{Name: claim.Name, Value: claim.Spec.Value}
		if r.isReserved(claim.Name) {
			reserved = append(reserved, reported)
		} else {
			custom = append(custom, reported)
		}
	}
	byName := func(a, b clusterv1.ManagedClusterClaim) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(reserved, byName)
	slices.SortFunc(custom, byName)
	return append(reserved, custom[:min(len(custom), max(r.MaxCustom, 0))]...)
}

func (r ClaimRules) isReserved(name string) bool {
	return slices.Contains(clusterv1alpha1.ReservedClusterClaimNames[:], name) ||
		slices.ContainsFunc(r.ReservedSuffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}
