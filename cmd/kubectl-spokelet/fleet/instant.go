package fleet

import "time"

// lastYear is the last year that a text of JSON has.
const lastYear = 9999

// Known returns an instant in UTC; zero where it is outside of the years 1 to 9999, which no answer can
// have. An agent may write such an instant: 9999-12-31T23:59:59-23:59 is one of the year 10000.
func Known(at time.Time) time.Time {
	at = at.UTC()
	if at.Year() < 1 || at.Year() > lastYear {
		return time.Time{}
	}
	return at
}

// Instant is Known for a field of an answer; nil where the instant is not known.
func Instant(at time.Time) *time.Time {
	known := Known(at)
	if known.IsZero() {
		return nil
	}
	return &known
}
