package timed

import (
	"fmt"
	"sync"
	"time"
)

const (
	// before is how long before a play begins occurrences count, which is longer than the longest of them; lasts is how
	// long a play is at most, and after how far beyond it the judge looks for the first instant.
	before, lasts, after = 33 * 24 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour
	// minutes is how many of them a play looks at.
	minutes = int((before + lasts + after) / time.Minute)
)

// era is some nights in which clocks do something.
type era struct {
	// name is what happens, from when the play may begin at first.
	name string
	from time.Time
	// zones are those whose clocks show it, and others.
	zones []string
}

// eras are those that plays are in.
func eras() []era {
	at := func(name, day string, zones ...string) era {
		from, err := time.Parse(time.DateOnly, day)
		if err != nil {
			panic(fmt.Sprintf("day %q of an era: %v", day, err)) // It is a literal.
		}
		return era{name: name, from: from, zones: append(zones, "UTC")}
	}
	return []era{
		at("a night of 23 hours", "2026-03-26", "Europe/Berlin", "Antarctica/Troll"),
		at("a night of 25 hours", "2026-10-22", "Europe/Berlin", "Africa/Cairo"),
		at("a night of 23 hours in America", "2026-03-06", "America/New_York", "America/Havana"),
		at("a night of 25 hours in America", "2026-10-30", "America/New_York", "America/Los_Angeles"),
		at("half an hour", "2027-04-01", "Australia/Lord_Howe", "Pacific/Auckland"),
		at("half an hour back", "2026-10-01", "Australia/Lord_Howe", "Asia/Kathmandu"),
		at("midnight is skipped", "2026-09-04", "America/Santiago", "Asia/Kolkata"),
		at("a day is skipped", "2011-12-28", "Pacific/Apia", "Pacific/Kiritimati"),
		at("the clock of Ramadan", "2026-02-13", "Africa/Casablanca", "Europe/London"),
		at("the clock after Ramadan", "2026-03-20", "Africa/Casablanca", "Asia/Tehran"),
		at("the last summer time", "2022-09-19", "Asia/Tehran", "Asia/Tokyo"),
		at("a zone leaves its summer time", "2022-10-26", "Asia/Amman", "Asia/Damascus"),
		at("a zone moves for good", "2021-01-30", "Africa/Juba", "Africa/Khartoum"),
		at("a zone moves by half an hour", "2018-05-03", "Asia/Pyongyang", "Asia/Seoul"),
		at("a zone stays in summer", "2016-09-05", "Europe/Istanbul", "America/Caracas"),
		at("a leap day", "2028-02-27", "Asia/Kathmandu", "America/Los_Angeles"),
		at("a leap day of before", "2024-02-27", "Europe/Berlin", "Pacific/Auckland"),
		at("a freeze begins", "2026-11-29", "Europe/Berlin", "Pacific/Kiritimati"),
		at("a freeze ends", "2026-12-29", "America/New_York", "Australia/Sydney"),
	}
}

// schedule is five fields of cron as the judge understands them; a nil list is a star.
type schedule struct {
	minutes, hours, days, months, weekdays []int
}

func fieldText(values []int) string {
	if values == nil {
		return "*"
	}
	text := ""
	for i, value := range values {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprint(value)
	}
	return text
}

// String returns the schedule as an author writes it.
func (s schedule) String() string {
	text := fieldText(s.minutes)
	for _, field := range [][]int{s.hours, s.days, s.months, s.weekdays} {
		text += " " + fieldText(field)
	}
	return text
}

// reading is what a clock shows in a minute. wall counts the minutes that it shows, as if it never jumped.
type reading struct {
	wall                              int64
	minute, hour, day, month, weekday int8
}

func read(wall int64) reading {
	t := time.Unix(wall*60, 0).UTC()
	return reading{
		wall: wall, minute: int8(t.Minute()), hour: int8(t.Hour()), day: int8(t.Day()), month: int8(t.Month()),
		weekday: int8(t.Weekday()),
	}
}

// has reports whether a field has a value.
func has(field []int, value int8) bool {
	for _, one := range field {
		if one == int(value) {
			return true
		}
	}
	return field == nil
}

// matches reports whether an occurrence begins in the minute. Where both the days of the month and of the week are
// named, one of both is enough.
func (s schedule) matches(r reading) bool {
	if !has(s.minutes, r.minute) || !has(s.hours, r.hour) || !has(s.months, r.month) {
		return false
	}
	if s.days != nil && s.weekdays != nil {
		return has(s.days, r.day) || has(s.weekdays, r.weekday)
	}
	return has(s.days, r.day) && has(s.weekdays, r.weekday)
}

// calendar keeps what clocks show, and when occurrences of schedules begin: plays of one era ask for the same.
type calendar struct {
	clocks, begun sync.Map
}

// clock returns what the clock of a zone shows in each minute of an era; nil for one that does not exist.
func (c *calendar) clock(of era, zone string) []reading {
	key := of.name + "@" + zone
	if known, found := c.clocks.Load(key); found {
		all, _ := known.([]reading)
		return all
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil
	}
	all := make([]reading, minutes)
	for n := range all {
		local := of.from.Add(-before).Add(time.Duration(n) * time.Minute).In(location)
		_, offset := local.Zone()
		all[n] = read(local.Unix()/60 + int64(offset/60))
	}
	c.clocks.Store(key, all)
	return all
}

// starts returns the numbers of the minutes in which occurrences begin.
func (c *calendar) starts(of era, zone string, s schedule) []int32 {
	key := of.name + "@" + zone + "@" + s.String()
	if known, found := c.begun.Load(key); found {
		all, _ := known.([]int32)
		return all
	}
	var all []int32
	clock := c.clock(of, zone)
	last := clock[0].wall - 1
	newest := last
	for n, now := range clock {
		begins := s.matches(now) && (now.wall > newest || s.hours == nil)
		for skipped := last + 1; skipped < now.wall && !begins; skipped++ {
			begins = skipped > newest && s.matches(read(skipped))
		}
		last, newest = now.wall, max(newest, now.wall)
		if begins {
			all = append(all, int32(n))
		}
	}
	c.begun.Store(key, all)
	return all
}

// covered returns for each minute of an era whether an occurrence of a window covers it.
func (c *calendar) covered(of era, zone string, w *window) []bool {
	all := make([]bool, minutes)
	for _, start := range c.starts(of, zone, w.schedule) {
		if !w.until.IsZero() && !of.instant(int(start)).Before(w.until) {
			break
		}
		for n := int(start); n < min(int(start)+w.length, minutes); n++ {
			all[n] = true
		}
	}
	return all
}

// number returns the number of the minute of an instant in an era.
func (e era) number(at time.Time) int { return int(at.Sub(e.from.Add(-before)) / time.Minute) }

// instant returns when the minute with a number begins.
func (e era) instant(number int) time.Time {
	return e.from.Add(-before).Add(time.Duration(number) * time.Minute)
}
