package work

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/offline"
)

// TestACopyThatWaitsIsNotRead: copies were read, decrypted and decoded ten times a second to find that there was no room
// for them.
func TestACopyThatWaitsIsNotRead(t *testing.T) {
	scheme := kruntime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	cache, err := offline.Open(t.Context(), offline.Config{
		Dir: t.TempDir(), Secrets: fake.NewClientBuilder().WithScheme(scheme).Build(), Namespace: "agent", HubHash: "hash",
		Cluster: "c",
	})
	require.NoError(t, err)
	r, f := backAt(t, 1, "a", "b")
	r.Cache, r.absence = cache, &absence{admitted: make(chan struct{})}
	f.applied.Annotations[inventory.AnnotationGeneration] = "u/1"
	require.NoError(t, r.inventory.Client.Update(t.Context(), f.applied))
	work := f.work.DeepCopy()
	work.Name = "w"
	var big workv1.Manifest
	big.Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"big","namespace":"ns"},"data":{"x":"` +
		strings.Repeat("y", 1<<20) + `"}}`)
	work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, big)
	cache.Invalidate(work.Name, work.UID, work.Generation)
	require.NoError(t, cache.Sync(t.Context(), work, "applied"))
	assert.InDelta(t, 1<<20, cache.Size("w"), 64<<10)

	require.True(t, r.crowd.enter("other", maxCrowd))
	f, err = r.observe(t.Context(), "w")
	require.NoError(t, err)
	assert.True(t, f.crowded)
	assert.Nil(t, f.copied, "it is read when it has its turn")
	result, err := r.Reconcile(t.Context(), r.request("w"))
	require.NoError(t, err)
	assert.Zero(t, result, "a request comes then")
	require.Equal(t, []string{"w"}, r.crowd.leave("other", maxCrowd))
	f, err = r.observe(t.Context(), "w")
	require.NoError(t, err)
	assert.False(t, f.crowded)
	require.NotNil(t, f.copied)
	r.crowd.leave("w", f.size)
	assert.Zero(t, r.crowd.bytes)
}
