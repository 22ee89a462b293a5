package gate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/policies"
)

// The agent of a cluster may move windows by timeZoneClaim by a day. It takes the claim away, or writes nonsense, or
// names another real time zone each time before the window would open: an add-on that no placement wants there goes.
//
// Shows: policies/removals-claim
func TestAnAgentKeepsNoAddOnForEverByAClaim(t *testing.T) {
	const day = 24 * time.Hour
	zones := []string{"Etc/GMT-14", "Etc/GMT-7", "UTC", "Etc/GMT+6", "Etc/GMT+12"}
	for sentence, tc := range map[string]struct {
		kind, schedule string
		duration       time.Duration
		zones          []string
		within         time.Duration
	}{
		"no claim":                          {"Allow", "0 1 * * *", 4 * time.Hour, []string{""}, 2 * day},
		"nonsense":                          {"Allow", "0 1 * * *", 4 * time.Hour, []string{"nowhere"}, 2 * day},
		"one real time zone":                {"Allow", "0 1 * * 6", 10 * time.Hour, zones[:1], 7 * day},
		"real ones in turns, at night":      {"Allow", "0 1 * * *", 4 * time.Hour, zones, 15 * day},
		"real ones in turns, not by day":    {"Deny", "0 6 * * *", 16 * time.Hour, zones, 15 * day},
		"real ones in turns, on a weekend":  {"Allow", "0 1 * * 6", 10 * time.Hour, zones, 21 * day},
		"real ones in turns, half of a day": {"Allow", "0 20 * * *", 12 * time.Hour, zones, 15 * day},
	} {
		t.Run(sentence, func(t *testing.T) {
			policy := &policies.AddOnPolicy{Spec: policies.AddOnPolicySpec{Removals: policies.RemovalsInWindows}}
			g := New("hello", policy, []policies.MaintenanceWindow{{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Spec: policies.MaintenanceWindowSpec{
				Kind: tc.kind, Schedule: tc.schedule, Duration: metav1.Duration{Duration: tc.duration}, TimeZoneClaim: "tz",
			}}})
			since, claims := time.Date(2030, 1, 1, 0, 30, 0, 0, time.UTC), 0
			judge := func(zone int, at time.Time) Verdict {
				return g.JudgeRemoval(Cluster{Claims: map[string]string{"tz": tc.zones[zone]}}, since, at)
			}
			closed := func(zone int, at time.Time) bool { return judge(zone, at).Held != "" }
			now := since
			for ; closed(claims, now) && now.Before(since.Add(60*day)); now = now.Add(10 * time.Minute) {
				soon := now.Add(10 * time.Minute)
				for next := 0; next < len(tc.zones) && !closed(claims, soon); next++ {
					if closed(next, now) && closed(next, soon) {
						claims = next
					}
				}
				wake := judge(claims, now).Wake
				assert.False(t, now.Before(since.Add(claimPeriod)) && wake.After(since.Add(claimPeriod)), "it looks again when UTC counts")
			}
			assert.LessOrEqual(t, now.Sub(since), tc.within)
		})
	}
}
