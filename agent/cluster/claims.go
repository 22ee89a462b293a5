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
	// DefaultMaxCustomClaims is how many claims besides the reserved ones are reported.
	DefaultMaxCustomClaims = 20
	// maxClaimValue is how many characters the API of the hub takes as the value of a claim.
	maxClaimValue = 1024
)

// clusterClaims is the kind of our own API that claims come from.
func clusterClaims() schema.GroupResource {
	return schema.GroupResource{Group: clusterv1alpha1.GroupName, Resource: "clusterclaims"}
}

// clusterProperties is the kind of Kubernetes' own multi-cluster API that claims come from.
func clusterProperties() schema.GroupResource {
	return schema.GroupResource{Group: "about.k8s.io", Resource: "clusterproperties"}
}

// claim is what is kept of a ClusterClaim or a ClusterProperty.
type claim struct {
	name, value string
	// hidden says that it stays on the spoke.
	hidden bool
}

// claimOf reads a ClusterClaim or ClusterProperty. One that the hub would refuse is an error: the whole status, with
// the health of the cluster in it, would be refused along with it.
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

// ClaimRules says which claims are reported.
type ClaimRules struct {
	// MaxCustom is the number of claims that are reported besides the reserved ones.
	MaxCustom int
	// ReservedSuffixes are endings of names that are reserved besides the names of the cluster API.
	ReservedSuffixes []string
}

// report turns the ClusterClaims and ClusterProperties of the spoke into the claims of the ManagedCluster: the reserved
// ones first, then the others up to the limit, each part ordered by name. Of two with one name the property counts, and
// where that one stays on the spoke, the claim.
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
