package setbinding

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// Shows: hub/binding-status
func TestABindingSaysWhetherItCounts(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for sentence, c := range map[string]struct {
		name, set string
		exists    bool
		want      metav1.Condition
	}{
		"a set that exists is bound": {
			name: "blue", set: "blue", exists: true, want: metav1.Condition{
				Status: "True", Reason: "ClusterSetBound", Message: "ManagedClusterSet blue is bound to namespace ns",
			},
		},
		"a set that does not exist is not": {
			name: "blue", set: "blue", want: metav1.Condition{
				Status: "False", Reason: "ClusterSetNotFound",
				Message: "ManagedClusterSet blue does not exist: create it, or delete this binding",
			},
		},
		"the sets of every hub need no object": {
			name: "global", set: "global", want: metav1.Condition{
				Status: "True", Reason: "ClusterSetBound", Message: "ManagedClusterSet global is bound to namespace ns",
			},
		},
		"a binding with another name than its set does not count": {
			name: "mine", set: "blue", exists: true, want: metav1.Condition{
				Status: "False", Reason: "BindingNameMismatch",
				Message: "A binding has the name of its set: delete this one, and create blue for ManagedClusterSet blue",
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			binding := &clusterv1beta2.ManagedClusterSetBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: c.name, Generation: 3},
				Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: c.set},
			}
			c.want.Type, c.want.LastTransitionTime, c.want.ObservedGeneration = "Bound", metav1.NewTime(now), 3
			conclude(facts{now: now, binding: binding, exists: c.exists}, &binding.Status)
			require.Equal(t, []metav1.Condition{c.want}, binding.Status.Conditions)
		})
	}
}
