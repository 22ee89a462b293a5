package windows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/windows"
)

// Of the last day of leap years after 2037, package time says that the rules of a zone ended before it. Without the
// guard in instants, each of these goes on for ever in one goroutine and takes ever more memory.
func TestTheLastDayOfALeapYearHasItsOccurrences(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Pacific/Auckland", "UTC"} {
		location, err := time.LoadLocation(zone)
		require.NoError(t, err)
		w, err := windows.Parse(windows.Spec{
			Name: "w", Kind: windows.Deny, Schedule: "0 */3 31,1 12,1 *", Duration: time.Hour, Location: location,
		})
		require.NoError(t, err)
		at := time.Date(2040, 12, 30, 12, 0, 0, 0, location)
		for hour := range 16 {
			at = w.Next(at)
			want := time.Date(2040, 12, 31, 3*hour, 0, 0, 0, location)
			assert.True(t, at.Equal(want), "%s: %s, not %s", zone, at, want)
		}
	}
}

// What never ends is judged.
func TestADenialWithoutAGapIsJudged(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for schedule, duration := range map[string]time.Duration{
		"@yearly": windows.LongestDuration, "@weekly": 169 * time.Hour, "@daily": 25 * time.Hour, "0 * * * *": 2 * time.Hour,
	} {
		w, err := windows.Parse(windows.Spec{
			Name: "freeze", Kind: windows.Deny, Schedule: schedule, Duration: duration, Location: berlin,
		})
		require.NoError(t, err)
		assert.False(t, windows.Judge([]windows.Window{w}, now).Open)
	}
}
