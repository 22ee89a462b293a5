package lease

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func renewedAt(t time.Time) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(t)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hello"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &renewed},
	}
}

func TestJudge(t *testing.T) {
	tests := map[string]struct {
		lease       *coordinationv1.Lease
		wantState   State
		wantExpires time.Time
		wantMessage string
	}{
		"no lease is missing": {wantState: Missing, wantMessage: "there is no lease"},
		"a lease without renewTime is stale": {
			lease:     &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hello"}},
			wantState: Stale, wantMessage: "lease ns/hello has no renewTime: it exists but was never renewed",
		},
		"a lease with a zero renewTime is stale": {
			lease: renewedAt(time.Time{}), wantState: Stale,
			wantMessage: "lease ns/hello has no renewTime: it exists but was never renewed",
		},
		"a lease renewed just now is fresh": {
			lease: renewedAt(noon), wantState: Fresh, wantExpires: noon.Add(AddonGrace),
		},
		"a moment before its expiry a lease is fresh": {
			lease: renewedAt(noon.Add(-AddonGrace + time.Microsecond)), wantState: Fresh,
			wantExpires: noon.Add(time.Microsecond),
		},
		"at its expiry a lease is stale": {
			lease: renewedAt(noon.Add(-AddonGrace)), wantState: Stale, wantExpires: noon,
			wantMessage: "lease ns/hello was last renewed at 2026-11-20T11:55:00Z, more than 5m0s ago",
		},
		"a lease renewed by a clock ahead of ours is fresh": {
			lease: renewedAt(noon.Add(time.Hour)), wantState: Fresh, wantExpires: noon.Add(time.Hour + AddonGrace),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Judge(tc.lease, noon, AddonGrace)
			assert.Equal(t, tc.wantState, got.State)
			assert.True(t, tc.wantExpires.Equal(got.ExpiresAt), "expires at %s", got.ExpiresAt)
			assert.Equal(t, tc.wantMessage, got.Message)
		})
	}
}

func TestClusterDurationAndGrace(t *testing.T) {
	tests := map[string]struct {
		seconds      int32
		wantDuration time.Duration
	}{
		"zero is the default":               {0, time.Minute},
		"negative is the default":           {-5, time.Minute},
		"one second stays":                  {1, time.Second},
		"the largest does not overflow":     {math.MaxInt32, min(math.MaxInt32*time.Second, maxDuration)},
		"five minutes stay":                 {300, 5 * time.Minute},
		"the largest that fits in ten days": {864000, 240 * time.Hour},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.wantDuration, ClusterDuration(tc.seconds))
			assert.Equal(t, 5*tc.wantDuration, ClusterGrace(tc.seconds))
			assert.Positive(t, ClusterGrace(tc.seconds))
		})
	}
}

func FuzzJudge(f *testing.F) {
	f.Add(int64(0), int64(0), int64(0))
	f.Add(int64(1_795_000_000), int64(300), int64(1_795_000_300))
	f.Add(int64(-62135596800), int64(-1), int64(5))
	f.Fuzz(func(t *testing.T, renewed, grace, now int64) {
		const century = 100 * 365 * 24 * 3600
		if grace < 0 || grace > century {
			return
		}
		l := renewedAt(time.Unix(renewed, 0))
		at, within := time.Unix(now, 0), time.Duration(grace)*time.Second
		v := Judge(l, at, within)
		switch v.State {
		case Fresh:
			if !at.Before(v.ExpiresAt) || Judge(l, v.ExpiresAt, within).State != Stale {
				t.Fatalf("fresh at %s, expires at %s", at, v.ExpiresAt)
			}
		case Stale:
			if v.Message == "" || (!v.ExpiresAt.IsZero() && at.Before(v.ExpiresAt)) {
				t.Fatalf("stale without a reason: %+v", v)
			}
		default:
			t.Fatalf("a lease was called %s", v.State)
		}
	})
}
