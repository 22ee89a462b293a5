package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

func TestSilenceIsToldWhenItBegins(t *testing.T) {
	in := func(status metav1.ConditionStatus) *clusterv1.ManagedCluster {
		c := &clusterv1.ManagedCluster{}
		if status != "" {
			c.Status.Conditions = []metav1.Condition{
				condition(clusterv1.ManagedClusterConditionAvailable, status, "x", noon()),
			}
		}
		return c
	}
	tests := map[string]struct {
		before, after metav1.ConditionStatus
		want          bool
	}{
		"it was healthy":               {metav1.ConditionTrue, metav1.ConditionUnknown, true},
		"it was unavailable":           {metav1.ConditionFalse, metav1.ConditionUnknown, true},
		"nobody ever knew":             {"", metav1.ConditionUnknown, true},
		"it was silent before":         {metav1.ConditionUnknown, metav1.ConditionUnknown, false},
		"it is not silent":             {metav1.ConditionTrue, metav1.ConditionTrue, false},
		"it came back in the meantime": {metav1.ConditionUnknown, metav1.ConditionTrue, false},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, fellSilent(in(tc.before), in(tc.after)))
		})
	}
}

func TestSilenceIsToldInTheNamespaceOfTheCluster(t *testing.T) {
	events := func(change func(*facts)) int {
		f := settledFacts()
		change(&f)
		recorder := events.NewFakeRecorder(1)
		(&Reconciler{Recorder: recorder}).recordSilence(f)
		return len(recorder.Events)
	}
	assert.Equal(t, 1, events(func(*facts) {}))
	assert.Zero(t, events(func(f *facts) { f.namespace = nil }), "there is no namespace")
	assert.Zero(t, events(func(f *facts) { f.namespace.DeletionTimestamp = deletedAt() }), "the namespace is going")
	(&Reconciler{}).recordSilence(settledFacts()) // Without a recorder, nobody is told.
}
