package install

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
)

// managedFieldsAfter returns what an API server writes into metadata.managedFields when label maintenance of a cluster is
// changed: the code is that of Kubernetes. The entries of before are as if written at an instant.
func managedFieldsAfter(t *testing.T, was, is *clusterv1.ManagedCluster, before time.Time) []metav1.ManagedFieldsEntry {
	t.Helper()
	gvk := schema.GroupVersionKind{Group: clusterv1.GroupName, Version: "v1", Kind: "ManagedCluster"}
	manager := managedfieldstest.NewFakeFieldManager(managedfields.NewDeducedTypeConverter(), gvk)
	content := func(c *clusterv1.ManagedCluster) *unstructured.Unstructured {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
		require.NoError(t, err)
		u := &unstructured.Unstructured{Object: raw}
		u.SetGroupVersionKind(gvk)
		u.SetManagedFields(nil)
		return u
	}
	none := &unstructured.Unstructured{Object: map[string]any{}}
	none.SetGroupVersionKind(gvk)
	bare := was.DeepCopy()
	bare.Labels = nil
	first, err := manager.Update(none, content(bare), "agent")
	require.NoError(t, err)
	live, _ := first.(*unstructured.Unstructured)
	labelled := content(was)
	labelled.SetManagedFields(live.GetManagedFields())
	second, err := manager.Update(live, labelled, "kubectl-label")
	require.NoError(t, err)
	live, _ = second.(*unstructured.Unstructured)
	entries := live.GetManagedFields()
	for i := range entries {
		entries[i].Time = &metav1.Time{Time: before}
	}
	live.SetManagedFields(entries)
	next := content(is)
	next.SetManagedFields(entries)
	third, err := manager.Update(live, next, "kubectl-label")
	require.NoError(t, err)
	live, _ = third.(*unstructured.Unstructured)
	return live.GetManagedFields()
}

// withFields returns a client of a cache that has managedFields of a cluster, which the fake one leaves out.
func withFields(h *pagesHub, fields *[]metav1.ManagedFieldsEntry) client.WithWatch {
	return interceptor.NewClient(h.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if cluster, is := o.(*clusterv1.ManagedCluster); is && key.Name == "c1" && err == nil {
				cluster.ManagedFields = *fields
			}
			return err
		},
	})
}

// Our placement drops a cluster, and a moment before the add-on goes a user takes back the change of the cluster that
// dropped it. The watch of clusters has told the placement, which decides in less than a second.
func TestAClusterThatIsChangedBackAMomentBeforeItsAddOnGoes(t *testing.T) {
	label := map[string]string{"maintenance": "true"}
	for sentence, tc := range map[string]struct {
		was, is map[string]string
		skew    time.Duration
	}{
		"a label is set":     {nil, label, 0},
		"a label is changed": {label, map[string]string{"maintenance": "false"}, 0},
		"a label is taken off, which Kubernetes does not note in managedFields": {label, nil, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			changedBack(t, tc.was, tc.is, tc.skew)
		})
	}
}

// changedBack has our placement drop c1, changes its labels just before the add-on goes, and asserts that it stays. The
// clock of the API server is ahead of ours by skew.
func changedBack(t *testing.T, before, after map[string]string, skew time.Duration) {
	t.Helper()
	h := newPagesHub(t, true, 0, func(*clusterv1beta1.Placement) {})
	passes, p := &fleet.Passes{}, types.NamespacedName{Namespace: "ns", Name: "p"}
	h.r.Placements.Passes = passes
	var c clusterv1.ManagedCluster
	require.NoError(t, h.Get(t.Context(), types.NamespacedName{Name: "c1"}, &c))
	c.Labels = before
	require.NoError(t, h.Update(t.Context(), &c))
	written := h.clock.Now().Add(skew - time.Hour).Truncate(time.Second)
	fields := []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: written}}}
	h.r.Client = withFields(h, &fields)
	begun := passes.Begin(p, h.clock.Now())
	h.dropped("c1")
	passes.End(p, begun)
	h.passes(2900 * time.Millisecond)
	require.Empty(t, h.removed, "decisions must be still for three seconds")

	changed := c.DeepCopy()
	changed.Labels = after
	require.NoError(t, h.Update(t.Context(), changed))
	fields = managedFieldsAfter(t, &c, changed, written)
	for i := range fields {
		if !fields[i].Time.Time.Equal(written) { // It was written now, by the clock of the API server.
			fields[i].Time = &metav1.Time{Time: h.clock.Now().Add(skew).Truncate(time.Second)}
		}
	}
	passes.Ask(p, "c1", h.clock.Now()) // as the watch of clusters does it
	h.passes(200 * time.Millisecond)
	assert.Empty(t, h.removed, "the placement is about to decide about the cluster")
}

// As TestAClusterThatIsChangedBackAMomentBeforeItsAddOnGoes, where the clock of the API server and ours differ.
func TestAClusterThatIsChangedBackByAnotherClock(t *testing.T) {
	for sentence, skew := range map[string]time.Duration{
		"the clock of the API server is 5 seconds behind ours":    -5 * time.Second,
		"the clock of the API server is 15 seconds behind ours":   -15 * time.Second,
		"the clock of the API server is 15 seconds ahead of ours": 15 * time.Second,
	} {
		t.Run(sentence, func(t *testing.T) {
			changedBack(t, nil, map[string]string{"maintenance": "false"}, skew)
		})
	}
}
