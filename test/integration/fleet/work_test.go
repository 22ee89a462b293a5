package fleet_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

func raw(manifest string) workv1.Manifest {
	return workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}
}

// workAvailable returns why a work is not applied and available at its generation.
func workAvailable(ctx context.Context, f *fleet.Fleet, key client.ObjectKey) error {
	var work workv1.ManifestWork
	if err := f.HubClient.Get(ctx, key, &work); err != nil {
		return err
	}
	for _, want := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		c := meta.FindStatusCondition(work.Status.Conditions, want)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != work.Generation {
			return fleet.NotYet("%s: %v", want, c)
		}
	}
	return nil
}

// TestOneBadManifestIsNamedAndItsSiblingsGoOn gives the agent, with its shipped rights, a work of which one manifest is
// of a kind that the cluster does not know.
func TestOneBadManifestIsNamedAndItsSiblingsGoOn(t *testing.T) {
	f := shared.fleet
	cluster := f.Cluster("cluster2")
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "one-bad", Namespace: cluster.Name}}
	work.Spec.Workload.Manifests = []workv1.Manifest{
		raw(`{"apiVersion":"example.com/v1","kind":"Unheard","metadata":{"name":"of","namespace":"default"}}`),
		raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one-bad-sibling","namespace":"default"}}`),
	}
	require.NoError(t, f.HubClient.Create(t.Context(), work))
	t.Cleanup(func() { removeWork(t, f, cluster, work) })

	eventually(t, "the sibling", func(ctx context.Context) error {
		return cluster.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "one-bad-sibling"}, &corev1.ConfigMap{})
	})
	var message string
	eventually(t, "the verdict", func(ctx context.Context) error {
		if err := f.HubClient.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		for _, manifest := range work.Status.ResourceStatus.Manifests {
			c := meta.FindStatusCondition(manifest.Conditions, workv1.ManifestApplied)
			if manifest.ResourceMeta.Ordinal == 0 && c != nil && c.Status == metav1.ConditionFalse {
				message = c.Message
				return nil
			}
		}
		return fleet.NotYet("%v", work.Status)
	})
	assert.Contains(t, message, "Unheard")
	assert.True(t, meta.IsStatusConditionFalse(work.Status.Conditions, workv1.WorkApplied))
}
