package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/library-wakes
func TestWhichChangesOfAClusterWakeItsAddOns(t *testing.T) {
	tests := map[string]struct {
		change func(after *clusterv1.ManagedCluster)
		wakes  bool
	}{
		"nothing does not":       {func(*clusterv1.ManagedCluster) {}, false},
		"image mirrors do":       {annotate(names.AnnotationImageRegistries), true},
		"an annotation does":     {annotate("a"), true},
		"a label does":           {label("l"), true},
		"a health label doesn't": {label("feature.open-cluster-management.io/addon-x"), false},
		"a claim does": {func(after *clusterv1.ManagedCluster) {
			after.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "c", Value: "v"}}
		}, true},
		"the version does": {func(after *clusterv1.ManagedCluster) { after.Status.Version.Kubernetes = "v1.32.0" }, true},
		"its health does": {func(after *clusterv1.ManagedCluster) {
			after.Status.Conditions[0].Status = metav1.ConditionFalse
		}, true},
		"a new reason does not":        {func(after *clusterv1.ManagedCluster) { after.Status.Conditions[0].Reason = "Other" }, false},
		"its deletion does":            {func(after *clusterv1.ManagedCluster) { after.DeletionTimestamp = &metav1.Time{} }, true},
		"that it is not accepted does": {func(after *clusterv1.ManagedCluster) { after.Spec.HubAcceptsClient = true }, true},
		"its capacity does not": {func(after *clusterv1.ManagedCluster) {
			after.Status.Capacity = clusterv1.ResourceList{"cpu": {}}
		}, false},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			before := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
			before.Status.Conditions = []metav1.Condition{{
				Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue,
			}}
			after := before.DeepCopy()
			tc.change(after)
			assert.Equal(t, tc.wakes, clusterChange().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
		})
	}
}

func annotate(key string) func(*clusterv1.ManagedCluster) {
	return func(after *clusterv1.ManagedCluster) { after.Annotations = map[string]string{key: "v"} }
}

func label(key string) func(*clusterv1.ManagedCluster) {
	return func(after *clusterv1.ManagedCluster) { after.Labels = map[string]string{key: "v"} }
}
