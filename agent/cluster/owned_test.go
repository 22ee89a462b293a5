package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

func entry(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
}

func quantities(values map[string]string) clusterv1.ResourceList {
	list := clusterv1.ResourceList{}
	for name, value := range values {
		list[clusterv1.ResourceName(name)] = resource.MustParse(value)
	}
	return list
}

func TestMerge(t *testing.T) {
	type values = map[string]string
	tests := map[string]struct {
		have, nodes values
		own         []clusterv1.ResourceName
		want        values
	}{
		"what the nodes report is written":              {nodes: values{"cpu": "4"}, want: values{"cpu": "4"}},
		"what they report counts against another value": {have: values{"cpu": "2"}, nodes: values{"cpu": "4"}, want: values{"cpu": "4"}},
		"what others wrote stays": {
			have: values{"core_worker": "8", "cpu": "4"}, nodes: values{"cpu": "4"}, own: []clusterv1.ResourceName{"cpu"},
			want: values{"core_worker": "8", "cpu": "4"},
		},
		"what we wrote and no node reports any more goes": {
			have: values{"nvidia.com/gpu": "1", "cpu": "4"}, nodes: values{"cpu": "4"},
			own: []clusterv1.ResourceName{"cpu", "nvidia.com/gpu"}, want: values{"cpu": "4"},
		},
		"without nodes only ours goes": {
			have: values{"core_worker": "8", "cpu": "4"}, own: []clusterv1.ResourceName{"cpu"}, want: values{"core_worker": "8"},
		},
		"the same in other words is left alone": {have: values{"cpu": "4000m"}, nodes: values{"cpu": "4"}, want: values{"cpu": "4000m"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			own := map[clusterv1.ResourceName]bool{}
			for _, one := range tc.own {
				own[one] = true
			}
			have := quantities(tc.have)
			got := merge(have, quantities(tc.nodes), own)
			assert.Equal(t, quantities(tc.want), got)
			assert.Equal(t, quantities(tc.have), have, "what the cache holds is not changed")
		})
	}
}

func TestOwnedBy(t *testing.T) {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		entry("work-agent", `{"f:status":{"f:capacity":{".":{},"f:cpu":{}},"f:allocatable":{"f:memory":{}}}}`),
		entry("work-agent", `{"f:metadata":{"f:labels":{"f:a":{}}}}`),
		entry("work-agent", `not JSON`),
		{Manager: "work-agent"},
		entry("other", `{"f:status":{"f:capacity":{"f:core_worker":{}}}}`),
	}}}
	want := owned{
		capacity:    map[clusterv1.ResourceName]bool{"cpu": true},
		allocatable: map[clusterv1.ResourceName]bool{"memory": true},
	}
	assert.Equal(t, want, ownedBy(cluster))
	stripped, err := StripManagedCluster(cluster)
	require.NoError(t, err)
	assert.Same(t, cluster, stripped)
	assert.Len(t, cluster.ManagedFields, 4, "what others wrote is not kept")
	assert.Equal(t, want, ownedBy(cluster))
	assert.Empty(t, ownedBy(&clusterv1.ManagedCluster{}).capacity)
}
