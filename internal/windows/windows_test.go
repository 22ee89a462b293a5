package windows_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/windows"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	location, err := time.LoadLocation(name)
	require.NoError(t, err)
	return location
}

func parse(t *testing.T, spec windows.Spec) windows.Window {
	t.Helper()
	if spec.Kind == "" {
		spec.Kind = windows.Allow
	}
	w, err := windows.Parse(spec)
	require.NoError(t, err)
	return w
}

// at reads an instant, in RFC 3339 without seconds.
func at(t *testing.T, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	instant, err := time.Parse("2006-01-02T15:04Z07:00", text)
	require.NoError(t, err)
	return instant
}

func TestWhenAWindowIsActive(t *testing.T) {
	nightly := windows.Spec{Schedule: "30 2 * * *", Duration: 2 * time.Hour, Location: zone(t, "Europe/Berlin")}
	hourly := windows.Spec{Schedule: "30 * * * *", Duration: 10 * time.Minute, Location: nightly.Location}
	for sentence, tc := range map[string]struct {
		spec    windows.Spec
		now     string
		active  bool
		changes string
	}{
		"before it begins": {nightly, "2026-11-30T02:29+01:00", false, "2026-11-30T02:30+01:00"},
		"as it begins":     {nightly, "2026-11-30T02:30+01:00", true, "2026-11-30T04:30+01:00"},
		"as it ends":       {nightly, "2026-11-30T04:30+01:00", false, "2026-12-01T02:30+01:00"},
		"in a night of 23 hours it begins when the clock goes on": {nightly, "2026-03-29T03:00+02:00", true, "2026-03-29T05:00+02:00"},
		"a minute before that it has not":                         {nightly, "2026-03-29T01:59+01:00", false, "2026-03-29T03:00+02:00"},
		"in a night of 25 hours it begins once":                   {nightly, "2026-10-25T02:30+02:00", true, "2026-10-25T03:30+01:00"},
		"and ends after its real duration":                        {nightly, "2026-10-25T03:30+01:00", false, "2026-10-26T02:30+01:00"},
		"one of every hour begins twice then":                     {hourly, "2026-10-25T02:29+01:00", false, "2026-10-25T02:30+01:00"},
		"on a leap day": {
			windows.Spec{Schedule: "0 0 29 2 *", Duration: time.Hour}, "2026-11-30T00:00Z", false, "2028-02-29T00:00Z",
		},
		"on a Monday that is a leap day": {
			windows.Spec{Schedule: "0 0 29 2 */1", Duration: time.Hour}, "2026-11-30T00:00Z", false, "2028-02-29T00:00Z",
		},
		"days of the month and of the week add up": {
			windows.Spec{Schedule: "0 0 13 * 5", Duration: time.Hour}, "2026-11-30T00:00Z", false, "2026-12-04T00:00Z",
		},
		"a day that does not exist": {windows.Spec{Schedule: "0 0 30 2 *", Duration: time.Hour}, "2026-11-30T00:00Z", false, ""},
		"occurrences that touch are one": {
			windows.Spec{Schedule: "0 1,2,3 * * *", Duration: time.Hour}, "2026-11-30T01:30Z", true, "2026-11-30T04:00Z",
		},
		"a zone that drops a day": { // Samoa had no 30 December 2011.
			windows.Spec{Schedule: "0 6 30 12 *", Duration: time.Hour, Location: zone(t, "Pacific/Apia")},
			"2011-12-29T23:59-10:00", false, "2011-12-31T00:00+14:00",
		},
		"after its end no occurrence begins": {
			windows.Spec{Schedule: "0 1 * * *", Duration: time.Hour, Until: at(t, "2026-12-02T01:00Z")}, "2026-12-01T02:00Z", false, "",
		},
		"one that has begun ends as it should": {
			windows.Spec{Schedule: "0 1 * * *", Duration: 3 * time.Hour, Until: at(t, "2026-12-01T02:00Z")}, "2026-12-01T03:00Z", true,
			"2026-12-01T04:00Z",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			state := parse(t, tc.spec).At(at(t, tc.now))
			assert.Equal(t, tc.active, state.Active)
			assert.True(t, state.Changes.Equal(at(t, tc.changes)), "changes %s, not %s", state.Changes, tc.changes)
		})
	}
}

func TestAWindowThatNeverEndsIsLookedAtAgain(t *testing.T) {
	now := at(t, "2026-11-30T01:00Z")
	state := parse(t, windows.Spec{Schedule: "* * * * *", Duration: time.Hour}).At(now)
	assert.True(t, state.Active)
	assert.True(t, state.Changes.After(now))
}

func TestWhatCannotBeUsedIsSaid(t *testing.T) {
	for want, spec := range map[string]windows.Spec{
		`schedule "61 * * * *": end of range (61) above maximum (59): 61`:                  {Schedule: "61 * * * *"},
		`schedule "@every 1h": an interval has no beginning on the clock; use five fields`: {Schedule: "@every 1h"},
		`schedule "TZ=UTC 0 1 * * *": the time zone has a field of its own`:                {Schedule: "TZ=UTC 0 1 * * *"},
		`kind "Forbid": allowed are Allow and Deny`:                                        {Schedule: "@daily", Kind: "Forbid"},
		"duration 30s: allowed are 1m to 8784h0m0s":                                        {Schedule: "@daily", Duration: 30 * time.Second},
		"duration 8785h0m0s: allowed are 1m to 8784h0m0s":                                  {Schedule: "@daily", Duration: windows.LongestDuration + time.Hour},
	} {
		if spec.Kind == "" {
			spec.Kind = windows.Deny
		}
		_, err := windows.Parse(spec)
		assert.EqualError(t, err, want)
	}
}

// Shows: policies/window-judge
func TestWhetherChangesMayBegin(t *testing.T) {
	allow := func(name, schedule string, lasts time.Duration) windows.Window {
		return parse(t, windows.Spec{Name: name, Schedule: schedule, Duration: lasts})
	}
	deny := func(name, schedule string, lasts time.Duration) windows.Window {
		return parse(t, windows.Spec{Name: name, Kind: windows.Deny, Schedule: schedule, Duration: lasts})
	}
	night, dawn := allow("night", "0 1 * * *", 4*time.Hour), allow("dawn", "0 4 * * *", 2*time.Hour)
	december := deny("december", "0 0 1 12 *", 31*24*time.Hour)
	const noon, early = "2026-11-30T12:00Z", "2026-11-30T04:30Z"
	for sentence, tc := range map[string]struct {
		all            []windows.Window
		now            string
		open           bool
		by             []string
		changes, opens string
	}{
		"without windows they may":         {nil, noon, true, nil, "", ""},
		"where one allows":                 {[]windows.Window{night, dawn}, early, true, []string{"dawn", "night"}, "2026-11-30T05:00Z", ""},
		"where none allows they may not":   {[]windows.Window{night, dawn}, noon, false, nil, "2026-12-01T01:00Z", "2026-12-01T01:00Z"},
		"what denies wins":                 {[]windows.Window{night, december}, "2026-12-05T02:00Z", false, []string{"december"}, "2026-12-05T05:00Z", "2027-01-01T01:00Z"},
		"outside what denies they may":     {[]windows.Window{december}, noon, true, nil, "2026-12-01T00:00Z", ""},
		"what denies for ever":             {[]windows.Window{deny("always", "* * * * *", time.Hour)}, noon, false, []string{"always"}, "", ""},
		"where nothing ever allows":        {[]windows.Window{allow("never", "0 0 30 2 *", time.Hour)}, noon, false, nil, "", ""},
		"denials that follow one another":  {[]windows.Window{deny("am", "0 0 * * *", 13*time.Hour), deny("pm", "0 12 * * *", 6*time.Hour)}, noon, false, []string{"am", "pm"}, "2026-11-30T13:00Z", "2026-11-30T18:00Z"},
		"an allowance that is denied away": {[]windows.Window{night, deny("night too", "0 1 * * *", 4*time.Hour)}, noon, false, nil, "2026-12-01T01:00Z", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			v := windows.Judge(tc.all, at(t, tc.now))
			assert.Equal(t, tc.open, v.Open)
			assert.Equal(t, tc.by, v.By)
			if tc.changes != "" {
				assert.True(t, v.Changes.Equal(at(t, tc.changes)), "changes %s, not %s", v.Changes, tc.changes)
			}
			assert.True(t, v.Opens.Equal(at(t, tc.opens)), "opens %s, not %s", v.Opens, tc.opens)
		})
	}
}

// oracle says minute by minute when the occurrences of a schedule begin, by what the clock of a zone shows.
func oracle(t *testing.T, schedule string, location *time.Location, from time.Time, minutes int) []time.Time {
	t.Helper()
	parsed, err := cron.ParseStandard(schedule)
	require.NoError(t, err)
	fields, is := parsed.(*cron.SpecSchedule)
	require.True(t, is)
	const star = 1 << 63
	matches := func(clock time.Time) bool {
		dom, dow := fields.Dom>>clock.Day()&1 == 1, fields.Dow>>clock.Weekday()&1 == 1
		day := dom || dow
		if fields.Dom&star != 0 || fields.Dow&star != 0 {
			day = dom && dow
		}
		return day && fields.Month>>clock.Month()&1 == 1 && fields.Hour>>clock.Hour()&1 == 1 && fields.Minute>>clock.Minute()&1 == 1
	}
	wall := func(instant time.Time) time.Time {
		local := instant.In(location)
		return time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), 0, 0, time.UTC)
	}
	var starts []time.Time
	shown := map[time.Time]bool{}
	before := wall(from.Add(-time.Minute))
	for n := range minutes {
		instant := from.Add(time.Duration(n) * time.Minute)
		now := wall(instant)
		begins := matches(now) && (!shown[now] || fields.Hour&star != 0)
		for skipped := before.Add(time.Minute); skipped.Before(now); skipped = skipped.Add(time.Minute) {
			begins = begins || matches(skipped)
		}
		shown[now] = true
		if begins {
			starts = append(starts, instant)
		}
		before = now
	}
	return starts
}

// Shows: policies/window-clock
func TestWindowsAreThoseOfTheClock(t *testing.T) {
	random := rand.New(rand.NewPCG(26, 11))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	zones := []string{
		"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca",
		"America/Santiago", "Pacific/Apia", "Asia/Tehran", "Antarctica/Troll",
	}
	for n := range 400 {
		location := zone(t, pick(zones...))
		schedule := fmt.Sprintf("%s %s %s %s %s", pick("0", "30", "15,45", "*/20"), pick("*", "0", "1", "2", "0-3", "23", "*/6"),
			pick("*", "*", "1", "28-31", "15"), pick("*", "*", "3,10", "2-4"), pick("*", "*", "0", "1-5"))
		lasts := time.Duration(1+random.IntN(300)) * time.Minute
		transition := time.Date(2022+random.IntN(6), time.Month(1+random.IntN(12)), 1+random.IntN(28), 0, 0, 0, 0, time.UTC)
		if _, end := transition.In(location).ZoneBounds(); !end.IsZero() && random.IntN(4) > 0 {
			transition = end // where the clock jumps
		}
		from := transition.Add(-26 * time.Hour).Truncate(time.Hour)
		starts := oracle(t, schedule, location, from.Add(-24*time.Hour), 80*60)
		w := parse(t, windows.Spec{Schedule: schedule, Duration: lasts, Location: location})
		what := strings.Join([]string{schedule, location.String(), lasts.String(), fmt.Sprint(n)}, ", ")
		for minute := 0; minute < 52*60; minute += 1 + random.IntN(9) {
			now := from.Add(time.Duration(minute) * time.Minute)
			active := false
			for _, start := range starts {
				active = active || !now.Before(start) && now.Before(start.Add(lasts))
			}
			state := w.At(now)
			require.Equal(t, active, state.Active, "%s: at %s", what, now.In(location))
			if !state.Changes.IsZero() && state.Changes.Before(from.Add(53*time.Hour)) {
				require.True(t, state.Changes.After(now), what)
				require.NotEqual(t, active, w.At(state.Changes).Active, "%s: at %s, which %s is to change", what, state.Changes, now)
				require.Equal(t, active, w.At(state.Changes.Add(-time.Minute)).Active, "%s: just before %s", what, state.Changes)
			}
		}
	}
}
