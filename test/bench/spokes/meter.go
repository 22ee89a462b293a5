package spokes

import (
	"fmt"
	"time"

	"github.com/spokelet/spokelet/test/bench/measure"
)

// Stats is how busy the clusters were.
type Stats struct {
	// Answers are the works that were answered, Requests the requests that took, and Errors those that failed.
	Answers, Requests, Errors int
	// MaxWaiting is the largest number of works that waited for an answer at once.
	MaxWaiting int
	// MaxReporting is the largest number of clusters that had yet to report about a new or changed work at once.
	MaxReporting int
	// Lasted is how long the measurement took, and Full for how much of it all writers were busy: then the clusters
	// themselves, or the API server that answers them, were what everything waited for.
	Lasted, Full time.Duration
	// Middle and Worst are the p50 and p99 of the time from a work that was seen to its answer, Options.Delay included.
	Middle, Worst time.Duration
}

// String describes how busy the clusters were.
func (s Stats) String() string {
	share := 0.0
	if s.Lasted > 0 {
		share = 100 * float64(s.Full) / float64(s.Lasted)
	}
	return fmt.Sprintf("%d requests (%d failed), saturated %.0f%%, queue %d, p50 %s, p99 %s",
		s.Requests, s.Errors, share, s.MaxWaiting, s.Middle.Round(time.Millisecond), s.Worst.Round(time.Millisecond))
}

// meter measures what becomes Stats. Its user locks it.
type meter struct {
	stats   Stats
	writers int
	began   time.Time
	// busy is how many writers are busy, full since when all of them are.
	busy int
	full time.Time
	took []time.Duration
}

func newMeter(writers int, now time.Time) meter { return meter{writers: writers, began: now} }

// waiting notes how many works wait.
func (m *meter) waiting(n int) {
	m.stats.MaxWaiting = max(m.stats.MaxWaiting, n)
}

// reporting notes how many clusters have yet to report.
func (m *meter) reporting(n int) {
	m.stats.MaxReporting = max(m.stats.MaxReporting, n)
}

// begin notes that a writer begins.
func (m *meter) begin(now time.Time) {
	m.busy++
	if m.busy == m.writers {
		m.full = now
	}
}

// end notes that a writer is done with a work that was seen at an instant.
func (m *meter) end(now, since time.Time, requests int, err error) {
	if m.busy == m.writers {
		m.stats.Full += now.Sub(m.full)
	}
	m.busy--
	m.stats.Requests += requests
	if err != nil {
		m.stats.Errors++
		return
	}
	m.stats.Answers++
	m.took = append(m.took, now.Sub(since))
}

// take returns the measurement and begins a new one, with what waits now.
func (m *meter) take(now time.Time, waiting, reporting int) Stats {
	stats := m.stats
	stats.Lasted = now.Sub(m.began)
	if m.busy == m.writers {
		stats.Full += now.Sub(m.full)
	}
	stats.Middle, stats.Worst = measure.Percentile(m.took, 0.50), measure.Percentile(m.took, 0.99)
	*m = meter{
		writers: m.writers, began: now, busy: m.busy, full: now,
		stats: Stats{MaxWaiting: waiting, MaxReporting: reporting},
	}
	return stats
}

// Stats returns how busy the clusters were since the last call.
func (s *Spokes) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meter.take(time.Now(), len(s.pending), len(s.reporting))
}
