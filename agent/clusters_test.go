package agent

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/csr"
)

// TestCachesHoldWhatIsNeeded looks at what every cache of the agent drops, and that works, the largest objects of all,
// are not copied to be looked at.
// Shows: work/memory
func TestCachesHoldWhatIsNeeded(t *testing.T) {
	holds := hubCache("cluster1", csr.ClusterUser("cluster1", "agent1"))
	all := options(holds)
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Name: "w", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "hub"}},
	}}
	kept, err := all.DefaultTransform(work)
	require.NoError(t, err)
	assert.Equal(t, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w"}}, kept)
	works := 0
	for object, by := range holds {
		if _, is := object.(*certificatesv1.CertificateSigningRequest); is {
			assert.NotNil(t, by.Transform, "not much is kept of the requests of others")
			continue
		}
		if _, is := object.(*clusterv1.ManagedCluster); is {
			assert.NotNil(t, by.Transform, "what the agent itself wrote is known")
			continue
		}
		assert.Nil(t, by.Transform, "%T has the transformation of all", object)
		if _, is := object.(*workv1.ManifestWork); is {
			works++
			assert.True(t, ptr.Deref(by.UnsafeDisableDeepCopy, false))
			require.Len(t, by.Namespaces, 1)
			assert.Contains(t, by.Namespaces, "cluster1", "the works of other clusters are theirs")
		}
	}
	assert.Equal(t, 1, works)
	for object, by := range (&agent{}).hostCache("cluster1").ByObject {
		if _, is := object.(*workv1.AppliedManifestWork); is {
			works++
			assert.True(t, ptr.Deref(by.UnsafeDisableDeepCopy, false))
		}
	}
	assert.Equal(t, 2, works)
}
