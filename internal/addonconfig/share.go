package addonconfig

import (
	"cmp"
	"slices"
	"strings"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/objectwatch"
)

const (
	// maxOfCluster is how many configurations of other kinds are watched for an add-on on one cluster, so that a user who
	// writes in the namespace of one cluster leaves room for others.
	maxOfCluster = 8
	// maxOfTenant is how many are watched for all add-ons on one cluster: a user who writes in its namespace may also
	// create add-ons of many names.
	maxOfTenant = 32
)

// mostOfAddOn returns how many are watched for an add-on on all clusters, of limit for all add-ons; zero is the default
// limit of a Watcher.
func mostOfAddOn(limit int) int { return cmp.Or(limit, objectwatch.DefaultLimit) / 2 }

// Named are configurations that one spec names: that of a ClusterManagementAddOn, or of an add-on on a cluster.
type Named struct {
	// Cluster is the cluster of the add-on; empty for a ClusterManagementAddOn.
	Cluster string
	Configs []addonv1beta1.AddOnConfig
}

// equal reports whether two specs name the same.
func (n Named) equal(other Named) bool {
	return n.Cluster == other.Cluster && slices.Equal(n.Configs, other.Configs)
}

// shares returns the references to configurations of other kinds that are watched for an add-on, and those beyond its
// share. Earlier specs come first; what several name counts for the first. most is how many are watched for the add-on;
// used counts what is watched for the add-ons of each cluster, and shares adds to it.
func shares(named []Named, most int, used map[string]int) (watched, beyond []objectwatch.Ref) {
	chosen := map[objectwatch.Ref]bool{}
	for _, spec := range named {
		own := 0
		for _, config := range spec.Configs {
			if _, known := confighash.Kind(config.ConfigGroupResource); known || chosen[refOf(config)] {
				continue
			}
			full := own >= maxOfCluster || used[spec.Cluster] >= maxOfTenant
			if len(chosen) >= most || (spec.Cluster != "" && full) {
				beyond = append(beyond, refOf(config))
				continue
			}
			own++
			used[spec.Cluster]++
			chosen[refOf(config)] = true
			watched = append(watched, refOf(config))
		}
	}
	beyond = slices.DeleteFunc(beyond, func(ref objectwatch.Ref) bool { return chosen[ref] })
	return sorted(watched), sorted(beyond)
}

// ofOtherKinds returns the specs that name configurations of other kinds, and whether one is that of a cluster.
func ofOtherKinds(named []Named) (others []Named, tenants bool) {
	for _, spec := range named {
		if slices.ContainsFunc(spec.Configs, func(config addonv1beta1.AddOnConfig) bool {
			_, known := confighash.Kind(config.ConfigGroupResource)
			return !known
		}) {
			others, tenants = append(others, spec), tenants || spec.Cluster != ""
		}
	}
	return others, tenants
}

// sorted orders references and leaves each once.
func sorted(refs []objectwatch.Ref) []objectwatch.Ref {
	slices.SortFunc(refs, func(a, b objectwatch.Ref) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(refs)
}
