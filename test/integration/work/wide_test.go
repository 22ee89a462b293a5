package work_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestDriftIsRepairedInMoreNamespacesThanThereAreWatches has a work with a ConfigMap in each of four namespaces, and an
// agent that may have two watches.
//
// Shows: work/watches-wide
func TestDriftIsRepairedInMoreNamespacesThanThereAreWatches(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.maxWatches = 2
	var all []any
	var maps []*corev1.ConfigMap
	for range 4 {
		cm := &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace(t, t.Name()), Name: "one"}, Data: map[string]string{"k": "v"},
		}
		all, maps = append(all, cm), append(maps, cm)
	}
	a := e.start()
	w := e.work("w", all...)
	e.create(w)
	e.settled(w)
	e.quiet(a)
	for _, cm := range maps {
		live := &corev1.ConfigMap{}
		require.NoError(t, e.Get(t.Context(), client.ObjectKeyFromObject(cm), live))
		live.Data["k"] = "by hand"
		require.NoError(t, e.Update(t.Context(), live))
		e.eventually("drift to be repaired", func() bool {
			return e.get(live, cm.Namespace, cm.Name) && live.Data["k"] == "v"
		})
	}
}
