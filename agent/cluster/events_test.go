package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

func TestAnEventTellsAFlipOfTheAvailability(t *testing.T) {
	is := func(status metav1.ConditionStatus) *clusterv1.ManagedCluster {
		if status == "" {
			return acceptedCluster()
		}
		return acceptedCluster(condition(clusterv1.ManagedClusterConditionAvailable, status, "R"))
	}
	const none, yes, no, unknown = metav1.ConditionStatus(""), metav1.ConditionTrue, metav1.ConditionFalse,
		metav1.ConditionUnknown
	tests := map[string]struct {
		before, after metav1.ConditionStatus
		want          string
	}{
		"nothing is known":                  {none, none, ""},
		"available for the first time":      {none, yes, "Normal Available"},
		"still available":                   {yes, yes, ""},
		"unavailable":                       {yes, no, "Warning Unavailable"},
		"still unavailable":                 {no, no, ""},
		"available again":                   {no, yes, "Normal Available"},
		"the hub's Unknown is taken back":   {unknown, yes, "Normal Available"},
		"Unknown turns out as unavailable":  {unknown, no, "Warning Unavailable"},
		"the hub tells of its own Unknown":  {yes, unknown, ""},
		"unavailable before anything other": {none, no, "Warning Unavailable"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			event := availabilityEvent(is(tc.before), is(tc.after), noon)
			if tc.want == "" {
				assert.Nil(t, event)
				return
			}
			require.NotNil(t, event)
			assert.Equal(t, tc.want, event.Type+" "+event.Reason)
			assert.Equal(t, "klusterlet-agent", event.ReportingController)
			assert.Equal(t, "c1", event.Namespace)
			assert.Equal(t, "u1", string(event.Regarding.UID))
			assert.Equal(t, noon, event.EventTime.Time)
		})
	}
}
