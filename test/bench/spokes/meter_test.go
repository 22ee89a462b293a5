package spokes

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestMeter(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	m := newMeter(2, at(0))
	m.waiting(3)
	m.waiting(1)
	m.reporting(2)
	m.begin(at(1))
	m.begin(at(2)) // both writers are busy for three seconds
	m.end(at(5), at(1), 2, nil)
	m.end(at(6), at(2), 1, errors.New("refused"))
	assert.Equal(t, Stats{
		Answers: 1, Requests: 3, Errors: 1, MaxWaiting: 3, MaxReporting: 2, Lasted: 10 * time.Second, Full: 3 * time.Second,
		Middle: 4 * time.Second, Worst: 4 * time.Second,
	}, m.take(at(10), 1, 1))

	m.begin(at(10))
	m.begin(at(11))
	assert.Equal(t, Stats{MaxWaiting: 1, MaxReporting: 1, Lasted: 4 * time.Second, Full: 3 * time.Second},
		m.take(at(14), 0, 0), "a writer that is still busy counts")
	m.end(at(16), at(11), 1, nil)
	assert.Equal(t, 2*time.Second, m.take(at(16), 0, 0).Full, "from the last measurement on")
}

func TestStatsAsText(t *testing.T) {
	assert.Equal(t, "4 requests (1 failed), saturated 25%, queue 7, p50 2ms, p99 9ms", Stats{
		Requests: 4, Errors: 1, MaxWaiting: 7, Lasted: 4 * time.Second, Full: time.Second,
		Middle: 2 * time.Millisecond, Worst: 9 * time.Millisecond,
	}.String())
	assert.Contains(t, Stats{}.String(), "saturated 0%")
}
