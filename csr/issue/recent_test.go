package issue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTheLimitCountsNoTimeToCome(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	times := make([]time.Time, MaxRecent)
	for n := range times {
		times[n] = start.Add(time.Duration(n) * time.Second)
	}
	for sentence, tc := range map[string]struct {
		now, next time.Time
	}{
		"at once after them":           {start.Add(9 * time.Second), start.Add(time.Minute)},
		"when the first is old enough": {now: start.Add(time.Minute)},
		"when the clock was set back":  {now: start.Add(-time.Hour)},
		"when all are over":            {now: start.Add(time.Hour)},
	} {
		assert.Equal(t, tc.next, Next(times, tc.now), sentence)
	}
	assert.Zero(t, Next(times[1:], start.Add(9*time.Second)), "nine are not too many")
}
