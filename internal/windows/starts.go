package windows

import (
	"iter"
	"math/bits"
	"slices"
	"time"
)

const (
	// every is the bit that a field of a schedule has when it is a star.
	every = 1 << 63
	// east and west are the largest offsets of time zones from UTC.
	east, west = 15 * time.Hour, 15 * time.Hour
)

// starts returns the beginnings of the occurrences after an instant, in their order.
func (w Window) starts(after time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		local := after.In(w.spec.Location)
		// A jump of the clock may move a beginning of the day before into this one.
		first := time.Date(local.Year(), local.Month(), local.Day()-1, 0, 0, 0, 0, time.UTC)
		last := after
		for n := range horizon {
			day := first.AddDate(0, 0, n)
			if !w.has(day) {
				continue
			}
			for _, start := range w.startsOf(day) {
				if !start.After(last) {
					continue
				}
				if !w.spec.Until.IsZero() && !start.Before(w.spec.Until) || !yield(start) {
					return
				}
				last = start
			}
		}
	}
}

// has reports whether the schedule has occurrences on a day. As cron does, it takes the days of the month and those of
// the week together where both are restricted.
func (w Window) has(day time.Time) bool {
	f := w.fields
	ofMonth, ofWeek := f.Dom>>day.Day()&1 == 1, f.Dow>>day.Weekday()&1 == 1
	if f.Month>>day.Month()&1 == 0 {
		return false
	}
	if f.Dom&every != 0 || f.Dow&every != 0 {
		return ofMonth && ofWeek
	}
	return ofMonth || ofWeek
}

// startsOf returns the beginnings on a day, in their order.
func (w Window) startsOf(day time.Time) []time.Time {
	var all []time.Time
	for hours := w.fields.Hour &^ every; hours != 0; hours &= hours - 1 {
		for minutes := w.fields.Minute &^ every; minutes != 0; minutes &= minutes - 1 {
			clock := day.Add(time.Duration(bits.TrailingZeros64(hours))*time.Hour +
				time.Duration(bits.TrailingZeros64(minutes))*time.Minute)
			all = append(all, w.instants(clock)...)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal)
}

// instants returns when the clock of the zone shows a time, which is given as one of UTC: mostly once.
func (w Window) instants(clock time.Time) []time.Time {
	var all []time.Time
	var skipped time.Time
	for at := clock.Add(-east).In(w.spec.Location); ; {
		_, offset := at.Zone()
		begin, end := at.ZoneBounds()
		if !end.IsZero() && !end.After(at) { // So package time says of the last day of leap years after 2037.
			end = at.Add(24 * time.Hour)
		}
		instant := clock.Add(-time.Duration(offset) * time.Second).In(w.spec.Location)
		switch {
		case !end.IsZero() && !instant.Before(end): // The clock may show it later, or not at all.
			skipped = end
		case instant.Before(begin): // It jumped over it.
			if len(all) == 0 && !skipped.IsZero() {
				all = append(all, skipped)
			}
		default:
			all = append(all, instant)
		}
		if end.IsZero() || end.After(clock.Add(west)) {
			break
		}
		at = end.In(w.spec.Location)
	}
	if len(all) > 1 && w.fields.Hour&every == 0 {
		all = all[:1]
	}
	return all
}
