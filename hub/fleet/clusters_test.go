package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

func TestWhichClustersGetAddOns(t *testing.T) {
	cluster := func(change func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
		c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
		change(c)
		return c
	}
	plain := cluster(func(*clusterv1.ManagedCluster) {})
	labelled := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.LabelClusterName: "c"}}}
	for sentence, test := range map[string]struct {
		cluster   *clusterv1.ManagedCluster
		namespace *metav1.PartialObjectMetadata
		want      bool
	}{
		"one that is accepted":                  {plain, labelled, true},
		"one whose namespace is made soon":      {plain, nil, true},
		"none that does not exist":              {nil, labelled, false},
		"none whose namespace others had first": {plain, &metav1.PartialObjectMetadata{}, false},
		"none that is not accepted": {
			cluster(func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }), labelled, false,
		},
		"none that is being deleted": {
			cluster(func(c *clusterv1.ManagedCluster) { c.DeletionTimestamp = new(metav1.NewTime(noon())) }), labelled, false,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			foreign, err := Unserved("c", test.cluster, test.namespace)
			assert.Equal(t, test.want, err == nil)
			assert.Equal(t, sentence == "none whose namespace others had first", foreign)
		})
	}
}
