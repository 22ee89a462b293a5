package badcluster

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatMissesTheFactor(t *testing.T) {
	times := func(median, tail, bare time.Duration) Times {
		t := Times{}
		for i := range 100 {
			took := median
			if i >= 98 {
				took = tail
			}
			t.Repair, t.Bare = append(t.Repair, took), append(t.Bare, bare)
		}
		return t
	}
	alone := times(20*time.Millisecond, 50*time.Millisecond, time.Millisecond)
	tests := map[string]struct {
		beside Times
		want   string
	}{
		"twice and some noise is held":          {times(50*time.Millisecond, 200*time.Millisecond, time.Millisecond), ""},
		"a slower median misses":                {times(51*time.Millisecond, 200*time.Millisecond, time.Millisecond), "percentile 50 of a change on another cluster is 51ms, and may be 50ms"},
		"a slower 99th percentile misses":       {times(50*time.Millisecond, 201*time.Millisecond, time.Millisecond), "percentile 99 of a change on another cluster is 201ms, and may be 200ms"},
		"unless bare writes are as much slower": {times(90*time.Millisecond, 300*time.Millisecond, 2*time.Millisecond), ""},
		"but no more than they are":             {times(91*time.Millisecond, 300*time.Millisecond, 2*time.Millisecond), "is 91ms, and may be 90ms"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			var out strings.Builder
			err := Write(&out, []Row{{Misdeed: "m", Rate: 100, Alone: alone, Beside: tc.beside}})
			if tc.want == "" {
				require.NoError(t, err)
				assert.NotContains(t, out.String(), "missed")
				return
			}
			require.ErrorContains(t, err, tc.want)
			assert.Contains(t, out.String(), "missed")
		})
	}
}
