package inventory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// TestARecordOfAnotherWorkThatTheCacheLacksIsNotOverwritten: the cache of the cluster lacks the AppliedManifestWork of
// the present work, and that of the hub has the earlier work of its name. To take it for the earlier one would apply
// that, and delete what it does not have.
//
// Shows: work/earlier-work
func TestARecordOfAnotherWorkThatTheCacheLacksIsNotOverwritten(t *testing.T) {
	for sentence, c := range map[string]struct {
		record string
		behind bool
	}{
		"another work was applied":        {"present/1", true},
		"a later generation was applied":  {"u/3", true},
		"the same generation was applied": {"u/2", false},
		"nothing is recorded":             {"", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			scheme := runtime.NewScheme()
			require.NoError(t, workv1.Install(scheme))
			applied := &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "hash-w", UID: "applied"}}
			setAnnotation(applied, AnnotationGeneration, c.record)
			spoke := fake.NewClientBuilder().WithScheme(scheme).WithObjects(applied).Build()
			w := &Writer{Client: spoke, Live: spoke, HubHash: "hash", AgentID: "agent"}
			work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "u", Generation: 2}}
			_, created, err := w.Create(t.Context(), work, []workv1.AppliedManifestResourceMeta{entryOf("a", "")})
			assert.False(t, created)
			assert.Equal(t, c.behind, reconcile.IsLostRace(err), "%v", err)
			var stored workv1.AppliedManifestWork
			require.NoError(t, spoke.Get(t.Context(), types.NamespacedName{Name: "hash-w"}, &stored))
			if c.behind {
				assert.Equal(t, c.record, stored.Annotations[AnnotationGeneration])
				assert.Empty(t, stored.Annotations[AnnotationIntent])
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "u/2", stored.Annotations[AnnotationGeneration])
		})
	}
}
