package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// renewed is a lease that says it was renewed at one instant and that the API server stored at another.
func renewed(at, stored time.Time) *coordinationv1.Lease {
	renewTime, written, labelled := metav1.NewMicroTime(at), metav1.NewTime(stored), metav1.NewTime(stored.Add(time.Hour))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: "managed-cluster-lease", Namespace: "c1",
			ManagedFields: []metav1.ManagedFieldsEntry{
				{
					Manager: "spokelet", Operation: "Update", Time: &written, FieldsType: "FieldsV1",
					FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:renewTime":{}}}`),
				},
				{
					Manager: "spokelet-hub", Operation: "Update", Time: &labelled, FieldsType: "FieldsV1",
					FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{}}}`),
				},
			},
		},
		Spec: coordinationv1.LeaseSpec{RenewTime: &renewTime},
	}
}

// Shows: registration/clock-check-opt-out
func TestWhatTheHubSaysAboutTheClockOfACluster(t *testing.T) {
	minute := func(n int) time.Time { return noon().Add(time.Duration(n) * time.Minute) }
	bare := renewed(noon(), noon())
	bare.ManagedFields = nil
	never := renewed(noon(), noon())
	never.Spec.RenewTime = nil
	tests := map[string]struct {
		lease   *coordinationv1.Lease
		seconds int32
		skip    string
		want    metav1.ConditionStatus
	}{
		"the same time is synced":                                         {lease: renewed(noon(), noon()), want: metav1.ConditionTrue},
		"a little less than the grace behind is synced":                   {lease: renewed(noon(), minute(5).Add(-time.Second)), want: metav1.ConditionTrue},
		"the whole grace behind is not":                                   {lease: renewed(noon(), minute(5)), want: metav1.ConditionFalse},
		"a little less than the grace ahead is synced":                    {lease: renewed(minute(5), noon().Add(time.Second)), want: metav1.ConditionTrue},
		"the whole grace ahead is not":                                    {lease: renewed(minute(5), noon()), want: metav1.ConditionFalse},
		"a shorter lease is stricter":                                     {lease: renewed(noon().Add(5*time.Second), noon()), seconds: 1, want: metav1.ConditionFalse},
		"a longer lease is more generous":                                 {lease: renewed(minute(5), noon()), seconds: 120, want: metav1.ConditionTrue},
		"an agent that stopped long ago has no wrong clock":               {lease: renewed(minute(-90), minute(-90)), want: metav1.ConditionTrue},
		"a cluster that opted out is synced":                              {lease: renewed(minute(60), noon()), skip: "true", want: metav1.ConditionTrue},
		"any other value of the annotation opts out of none":              {lease: renewed(minute(60), noon()), skip: "yes", want: metav1.ConditionFalse},
		"no lease tells nothing":                                          {},
		"a lease that was never renewed tells nothing":                    {lease: never},
		"a lease of which nobody knows when it was written tells nothing": {lease: bare},
		"where it is not to be compared it is right, lease or not":        {lease: bare, skip: "true", want: metav1.ConditionTrue},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			f.lease, f.cluster.Spec.LeaseDurationSeconds = tc.lease, max(tc.seconds, 0)
			if tc.skip != "" {
				f.cluster.Annotations = map[string]string{annotationSkipClock: tc.skip}
			}
			got := clockCondition(f)
			if tc.want == "" {
				assert.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			assert.Equal(t, tc.want, got.Status)
			assert.Equal(t, "ManagedClusterConditionClockSynced", got.Type)
			if tc.want == metav1.ConditionTrue {
				assert.Equal(t, "ManagedClusterClockSynced", got.Reason)
				assert.Equal(t, "The clock of the managed cluster is synced with the hub.", got.Message)
				return
			}
			assert.Equal(t, "ManagedClusterClockOutOfSync", got.Reason)
			assert.Equal(t, "The clock of hub and agent is out of sync. This may cause the Unknown status and affect agent "+
				"functionalities.", got.Message)
		})
	}
}

func TestOnlyAnAcceptedClusterHasAClock(t *testing.T) {
	f := settledFacts()
	f.lease = renewed(noon(), noon())
	find := func() *metav1.Condition {
		for _, c := range conditions(f, decide(f), nil) {
			if c.Type == clusterv1.ManagedClusterConditionClockSynced {
				return &c
			}
		}
		return nil
	}
	assert.NotNil(t, find())
	f.cluster.Spec.HubAcceptsClient = false
	assert.Nil(t, find())
}

func TestATrimmedLeaseStillTellsWhenItWasWritten(t *testing.T) {
	l := renewed(noon().Add(7*time.Second), noon())
	for range 2 {
		trimmed, err := TrimLease(l)
		require.NoError(t, err)
		assert.Same(t, l, trimmed)
		require.Len(t, l.ManagedFields, 1)
		skew, known := clockSkew(l)
		assert.True(t, known)
		assert.Equal(t, 7*time.Second, skew)
	}
	l.ManagedFields = nil
	_, err := TrimLease(l)
	require.NoError(t, err)
	assert.Empty(t, l.ManagedFields)
	other, err := TrimLease(42)
	require.NoError(t, err)
	assert.Equal(t, 42, other)
}

func TestAHeartbeatWakesTheClusterOnlyWhenItsClockTurns(t *testing.T) {
	skewed := func(by time.Duration) *coordinationv1.Lease { return renewed(noon().Add(by), noon()) }
	tests := map[string]struct {
		before, after time.Duration
		asks, want    bool
	}{
		"right before and after":                        {0, time.Second, false, false},
		"somewhat wrong before and after":               {10 * time.Second, 11 * time.Second, true, false},
		"wrong before and after":                        {time.Hour, -time.Hour, true, false},
		"it goes wrong":                                 {0, time.Hour, true, true},
		"it goes wrong the other way":                   {0, -time.Hour, true, true},
		"it is put right":                               {time.Hour, 0, true, true},
		"it goes wrong by exactly the grace":            {0, 5 * time.Minute, true, true},
		"it goes wrong by a moment less than the grace": {0, 5*time.Minute - time.Second, true, false},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			asked := false
			got := clockConditionChanges(skewed(tc.before), skewed(tc.after), func() time.Duration { asked = true; return 5 * time.Minute })
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.asks, asked)
		})
	}
	unwritten := skewed(0)
	unwritten.ManagedFields = nil
	assert.True(t, clockConditionChanges(unwritten, skewed(0), nil), "now that it is known, it is told")
	assert.False(t, clockConditionChanges(skewed(0), unwritten, nil), "what is not known any more is not told")
}
