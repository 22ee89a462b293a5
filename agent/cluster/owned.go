package cluster

import (
	"encoding/json"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// fieldManager is the field manager of the agent on its ManagedCluster.
const fieldManager = names.FieldManagerWork

// StripManagedCluster is the cache transform for the ManagedCluster: it drops the managed fields of all managers but
// the agent. Other objects pass unchanged.
func StripManagedCluster(in any) (any, error) {
	cluster, ok := in.(*clusterv1.ManagedCluster)
	if !ok {
		return in, nil
	}
	var own []metav1.ManagedFieldsEntry
	for _, entry := range cluster.ManagedFields {
		if entry.Manager == fieldManager {
			own = append(own, entry)
		}
	}
	cluster.ManagedFields = own
	return cluster, nil
}

// owned are the resources in the status of the ManagedCluster that the agent wrote.
type owned struct {
	capacity, allocatable map[clusterv1.ResourceName]bool
}

// ownedBy reads from the managed fields which resources the agent wrote. Entries that cannot be decoded do not count.
func ownedBy(cluster *clusterv1.ManagedCluster) owned {
	own := owned{capacity: map[clusterv1.ResourceName]bool{}, allocatable: map[clusterv1.ResourceName]bool{}}
	for _, entry := range cluster.ManagedFields {
		if entry.Manager != fieldManager || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Status struct {
				Capacity    map[string]any `json:"f:capacity"`
				Allocatable map[string]any `json:"f:allocatable"`
			} `json:"f:status"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		take(own.capacity, fields.Status.Capacity)
		take(own.allocatable, fields.Status.Allocatable)
	}
	return own
}

func take(own map[clusterv1.ResourceName]bool, fields map[string]any) {
	for field := range fields {
		if name, ok := strings.CutPrefix(field, "f:"); ok {
			own[clusterv1.ResourceName(name)] = true
		}
	}
}

// withSums returns capacity and allocatable of the ManagedCluster with the sums over the nodes.
func withSums(f facts) (capacity, allocatable clusterv1.ResourceList) {
	own, have := ownedBy(f.cluster), &f.cluster.Status
	return merge(have.Capacity, f.resources.capacity, own.capacity),
		merge(have.Allocatable, f.resources.allocatable, own.allocatable)
}

// sumsChange reports whether the sums over the nodes differ from those of the ManagedCluster.
func sumsChange(f facts) bool {
	if f.resources == nil {
		return false
	}
	capacity, allocatable := withSums(f)
	return !equality.Semantic.DeepEqual(capacity, f.cluster.Status.Capacity) ||
		!equality.Semantic.DeepEqual(allocatable, f.cluster.Status.Allocatable)
}

// merge returns the resources of the status with the sums over the nodes. Resources that no node reports are removed if
// the agent wrote them: other writers may add resources of their own. Equal quantities keep their notation.
func merge(
	have, nodes clusterv1.ResourceList, own map[clusterv1.ResourceName]bool,
) clusterv1.ResourceList {
	merged := maps.Clone(have)
	if merged == nil {
		merged = clusterv1.ResourceList{}
	}
	maps.DeleteFunc(merged, func(name clusterv1.ResourceName, _ resource.Quantity) bool {
		_, reported := nodes[name]
		return !reported && own[name]
	})
	maps.Copy(merged, nodes)
	if equality.Semantic.DeepEqual(have, merged) {
		return have
	}
	return merged
}
