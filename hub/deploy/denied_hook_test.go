package deploy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// The agent of a denied cluster keeps its access to ManifestWorks until none is left, so a hook runs there. With the
// ManagedCluster being deleted as well, nobody is left who would accept the cluster again.
func TestAHookOfADeniedClusterThatIsBeingDeletedDoesNotWaitForItsAcceptance(t *testing.T) {
	f := leavingFacts(finalizerHook)
	f.rendering.Objects = append(f.rendering.Objects, hookJob())
	f.cluster = f.cluster.DeepCopy()
	at := metav1.NewTime(time.Unix(940, 0))
	f.cluster.Spec.HubAcceptsClient, f.cluster.DeletionTimestamp = false, &at
	p := decideDeletion(f)
	assert.NotEmpty(t, p.drop, "it waits for ever: %v", p.conditions)
	assert.True(t, p.skipped, "nobody ever ran anything there")

	f.cluster.Annotations = map[string]string{names.AnnotationAcceptedOn: "2026-11-23T00:00:00Z"}
	p = decideDeletion(f)
	assert.NotNil(t, created(p), "the agent is still there: %v", p.conditions)
	assert.Empty(t, p.drop)

	f.cluster.DeletionTimestamp = nil
	p = decideDeletion(f)
	assert.Nil(t, created(p), "it waits for a person")
	assert.Empty(t, p.drop)
}
