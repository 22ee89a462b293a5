package issue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// As TestNoClockMakesAnAgentAskWithoutEnd, and the clock is years behind: a board without a battery begins in 1970.
func TestAClockYearsBehindMakesNoAgentAskWithoutEnd(t *testing.T) {
	for name, ahead := range map[string]time.Duration{
		"control: 300 days behind": -300 * 24 * time.Hour, "two years behind": -2 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ahead = ahead
			for range 120 {
				w.refresh()
				_, err := w.pass()
				require.NoError(t, err)
				require.Less(t, len(w.created), 20, "after %s", w.now.Sub(noon))
				w.approve()
				w.now = w.now.Add(10 * time.Second)
			}
			assert.LessOrEqual(t, len(w.created), 7)
		})
	}
}
