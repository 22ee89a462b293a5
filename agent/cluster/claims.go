package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

const (
	// labelSpokeOnly on a ClusterClaim or ClusterProperty keeps it on the spoke; its value does not matter.
	labelSpokeOnly = "open-cluster-management.io/spoke-only"
	// DefaultMaxCustomClaims is the number of claims that are reported besides the reserved ones.
	DefaultMaxCustomClaims = 20
	// maxClaimValue is the number of characters that the API of the hub accepts as the value of a claim.
	maxClaimValue = 1024
)

// clusterClaims is the resource of ClusterClaims, a kind of the cluster API.
func clusterClaims() schema.GroupResource {
	return schema.GroupResource{Group: clusterv1alpha1.GroupName, Resource: "clusterclaims"}
}

// clusterProperties is the resource of ClusterProperties, a kind of Kubernetes' multi-cluster API.
func clusterProperties() schema.GroupResource {
	return schema.GroupResource{Group: "about.k8s.io", Resource: "clusterproperties"}
}

// claim is the value kept of a ClusterClaim or a ClusterProperty.
type claim struct {
	name, value string
	// hidden is set when it is not reported to the hub.
	hidden bool
}

// claimOf reads a ClusterClaim or ClusterProperty. A value that the hub would reject is an error: the hub would reject
// the whole status with it, including the health of the cluster.
func claimOf(object *unstructured.Unstructured) (claim, error) {
	if _, hidden := object.GetLabels()[labelSpokeOnly]; hidden {
		return claim{name: object.GetName(), hidden: true}, nil
	}
	value, _, err := unstructured.NestedString(object.Object, "spec", "value")
	switch length := utf8.RuneCountInString(value); {
	case err != nil:
		return claim{}, fmt.Errorf("reading its value: %w", err)
	case length == 0:
		return claim{}, errors.New("it has no value")
	case length > maxClaimValue:
		return claim{}, fmt.Errorf("its value has %d characters, and the hub takes %d at most", length, maxClaimValue)
	}
	return claim{name: object.GetName(), value: value}, nil
}

// ClaimRules select the claims that are reported.
type ClaimRules struct {
	// MaxCustom is the number of claims that are reported besides the reserved ones.
	MaxCustom int
	// ReservedSuffixes are endings of names that are reserved besides the names of the cluster API.
	ReservedSuffixes []string
}

// report returns the claims of the ManagedCluster for the ClusterClaims and ClusterProperties of the spoke: the
// reserved ones first, then the others up to the limit, both ordered by name. A property replaces a claim of the same
// name unless it is hidden.
func (r ClaimRules) report(claims, properties []claim) []clusterv1.ManagedClusterClaim {
	merged := map[string]string{}
	for _, c := range slices.Concat(claims, properties) {
		if !c.hidden {
			merged[c.name] = c.value
		}
	}
	var reserved, custom []clusterv1.ManagedClusterClaim
	for name, value := range merged {
		reported := clusterv1.ManagedClusterClaim{Name: name, Value: value}
		if r.isReserved(name) {
			reserved = append(reserved, reported)
		} else {
			custom = append(custom, reported)
		}
	}
	byName := func(a, b clusterv1.ManagedClusterClaim) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(reserved, byName)
	slices.SortFunc(custom, byName)
	return slices.Concat(reserved, custom[:min(len(custom), max(r.MaxCustom, 0))])
}

func (r ClaimRules) isReserved(name string) bool {
	return slices.Contains(clusterv1alpha1.ReservedClusterClaimNames[:], name) ||
		slices.ContainsFunc(r.ReservedSuffixes, func(suffix string) bool {
			return suffix != "" && strings.HasSuffix(name, suffix)
		})
}
