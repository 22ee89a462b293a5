package agent

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// TestCachesHoldWhatIsNeeded looks at what every cache of the agent drops, and that works, the largest objects of all,
// are not copied to be looked at.
// Shows: work/memory
func TestCachesHoldWhatIsNeeded(t *testing.T) {
	holds := hubCache("cluster1")
	all := options(holds)
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Name: "w", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "hub"}},
	}}
	kept, err := all.DefaultTransform(work)
	require.NoError(t, err)
	assert.Equal(t, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w"}}, kept)
	works := 0
	for object, by := range holds {
		_, is := object.(*certificatesv1.CertificateSigningRequest)
		assert.False(t, is, "anybody makes any number of these")
		if _, is := object.(*clusterv1.ManagedCluster); is {
			assert.NotNil(t, by.Transform, "what the agent itself wrote is known")
			continue
		}
		if _, is := object.(*workv1.ManifestWork); is {
			works++
			require.NotNil(t, by.Transform, "when it was written is known")
			kept, err := by.Transform(work)
			require.NoError(t, err)
			assert.Equal(t, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w"}}, kept)
			assert.True(t, ptr.Deref(by.UnsafeDisableDeepCopy, false))
			require.Len(t, by.Namespaces, 1)
			assert.Contains(t, by.Namespaces, "cluster1", "the works of other clusters are theirs")
			continue
		}
		assert.Nil(t, by.Transform, "%T has the transformation of all", object)
	}
	assert.Equal(t, 1, works)
	for object, by := range (&agent{}).hostCache().ByObject {
		if _, is := object.(*workv1.AppliedManifestWork); is {
			works++
			assert.True(t, ptr.Deref(by.UnsafeDisableDeepCopy, false))
		}
	}
	assert.Equal(t, 2, works)
}

// Shows: registration/hosted-namespaces
func TestTheAgentReadsSecretsOnlyWhereItMust(t *testing.T) {
	const own = "agent-ns"
	tests := map[string]struct {
		hosted     bool
		namespaces []string
		// credentials are the namespaces beside its own one where it reads the credentials of add-ons.
		credentials []string
	}{
		"beside its cluster, add-ons may be in any namespace": {credentials: []string{cache.AllNamespaces}},
		"on a hosting cluster, too, if nobody restricts it":   {hosted: true, credentials: []string{cache.AllNamespaces}},
		"on a hosting cluster in its own namespace alone":     {hosted: true, namespaces: []string{own}},
		"on a hosting cluster in some more": {
			hosted: true, namespaces: []string{own, "a", "b"}, credentials: []string{"a", "b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := &agent{config: Config{Namespace: own, HostedAddonNamespaces: tc.namespaces}}
			if tc.hosted {
				a.config.SpokeKubeconfig = "/spoke/config/kubeconfig"
			}
			found := a.addonNamespaces("cluster1")
			assert.Nil(t, found[own].LabelSelector, "in its own namespace it reads its own Secrets")
			delete(found, own)
			assert.ElementsMatch(t, tc.credentials, slices.Collect(maps.Keys(found)))
			for namespace, config := range found {
				assert.NotNil(t, config.LabelSelector, "in %q it reads nothing that it did not write", namespace)
			}
			for object, by := range a.hostCache().ByObject {
				if _, is := object.(*corev1.Secret); is {
					assert.Len(t, by.Namespaces, 1, "its own credential depends on no other namespace")
				}
			}
		})
	}
}

// TestAHostingClusterNeedsNoDefinitions: a cache asks the API server for each kind that it is made for, and no manager
// can be built where one is not served.
func TestAHostingClusterNeedsNoDefinitions(t *testing.T) {
	hosted := &agent{config: Config{Namespace: "cluster1", SpokeKubeconfig: "/spoke/config/kubeconfig"}}
	for object := range hosted.hostCache().ByObject {
		assert.IsType(t, &corev1.Secret{}, object)
	}
}
