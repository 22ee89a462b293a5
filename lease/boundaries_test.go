package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/spokelet/spokelet/internal/pause"
)

func TestStoredAt(t *testing.T) {
	entry := func(at *time.Time, fields string) metav1.ManagedFieldsEntry {
		e := metav1.ManagedFieldsEntry{Manager: "m"}
		if at != nil {
			stamp := metav1.NewTime(*at)
			e.Time = &stamp
		}
		if fields != "" {
			e.FieldsV1 = metav1.NewFieldsV1(fields)
		}
		return e
	}
	const renews, other = `{"f:spec":{"f:renewTime":{}}}`, `{"f:spec":{"f:holderIdentity":{}}}`
	earlier, later := noon.Add(-time.Minute), noon
	tests := map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   time.Time
	}{
		"a lease without managed fields has no time":      {},
		"the manager of renewTime has the time":           {[]metav1.ManagedFieldsEntry{entry(&later, renews)}, later},
		"a manager of other fields does not count":        {[]metav1.ManagedFieldsEntry{entry(&later, other)}, time.Time{}},
		"a manager without a time does not count":         {[]metav1.ManagedFieldsEntry{entry(nil, renews)}, time.Time{}},
		"a manager without fields does not count":         {[]metav1.ManagedFieldsEntry{entry(&later, "")}, time.Time{}},
		"the last of several managers counts":             {[]metav1.ManagedFieldsEntry{entry(&earlier, renews), entry(&later, renews)}, later},
		"their order does not matter":                     {[]metav1.ManagedFieldsEntry{entry(&later, renews), entry(&earlier, renews)}, later},
		"a later manager of other fields does not either": {[]metav1.ManagedFieldsEntry{entry(&earlier, renews), entry(&later, other)}, earlier},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := StoredAt(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ManagedFields: tc.fields}})
			assert.True(t, tc.want.Equal(got), "got %s", got)
		})
	}
}

func TestThePauseAfterFailedRenewals(t *testing.T) {
	b := &renewLoop{Renewer: Renewer{Namespace: "ns", Name: "hello"}, period: 8 * time.Minute}
	share := 1 + jitterFactor*pause.Fraction("ns", "hello")
	tests := map[string]struct {
		failures int
		want     time.Duration
	}{
		"the first pause is a second":                {0, time.Second},
		"it doubles":                                 {1, 2 * time.Second},
		"and doubles again":                          {5, 32 * time.Second},
		"until it is a quarter of the period":        {7, 2 * time.Minute},
		"it stays there however many failures there": {1000, 2 * time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.InDelta(t, float64(tc.want)*share, float64(b.retry(tc.failures)), float64(time.Millisecond))
		})
	}
}

func TestTheShareOfALeaseIsFixed(t *testing.T) {
	// After an upgrade of the agents, a fleet must not be spread again.
	assert.InDelta(t, 0.14063194882994523, pause.Fraction("cluster1", "managed-cluster-lease"), 1e-15)
	assert.NotEqual(t, pause.Fraction("a", "bc"), pause.Fraction("ab", "c"), "the parts are kept apart")
	b := &Renewer{Namespace: "cluster1", Name: "managed-cluster-lease", Duration: time.Minute}
	assert.Equal(t, time.Minute+time.Duration(float64(time.Minute)*jitterFactor*pause.Fraction("cluster1", "managed-cluster-lease")),
		b.period())
}

func TestTheFirstFailureIsRepeatedAfterTheFirstPause(t *testing.T) {
	b := &renewLoop{
		Renewer: Renewer{Leases: &server{}, Namespace: "c1", Name: ClusterLease, Clock: clocktesting.NewFakeClock(noon)},
		period:  time.Minute,
	}
	for failures := range 3 {
		assert.Equal(t, b.retry(failures), b.step(t.Context()), "there is no lease, failure %d", failures+1)
	}
}
