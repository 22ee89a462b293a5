package long

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

func TestTheTableHasWhatChildrenSaidAndWhatGrew(t *testing.T) {
	outcomes := []Outcome{
		{
			Name: "storm", Command: "storm -seed 7", Took: time.Hour, Table: tableIn("noise\nstorm, seed 7  1h\n  edits  9\n", "storm, seed"),
			Lives: []Life{
				{Program: "agent of storm", Short: 2, Lasted: time.Minute},
				{Program: "hub manager", PID: 1, Lasted: time.Hour, Trends: map[fleet.Figure]Trend{
					fleet.Memory: {First: 40 * mebibyte, Last: 80.25 * mebibyte, Grown: true}, fleet.Goroutines: {First: 99, Last: 100},
				}},
			},
		},
		{Name: "lies", Command: "plays", Failed: "exit status 1", Table: tableIn("a\nb", "lies ")},
	}
	var out strings.Builder
	require.NoError(t, Write(&out, outcomes))
	lines := strings.Split(out.String(), "\n")
	assert.Equal(t, []string{
		"storm: storm -seed 7: well after 1h0m0s", "    storm, seed 7  1h", "      edits  9", "lies: plays: exit status 1 after 0s",
		"    a", "    b",
	}, lines[:6])
	assert.Regexp(t, `^storm: agent of storm \(2 short\) +1m0s *$`, lines[7])
	assert.Regexp(t, `^storm: hub manager +1h0m0s +40.0 80.2 GREW +99 100 *$`, lines[8])
	assert.Equal(t, "grown  1", lines[9])
	require.EqualError(t, Check(outcomes),
		"lies: exit status 1\nstorm: hub manager (1): memory grew from 41943040 to 84148224")
	require.EqualError(t, Check([]Outcome{{Name: "x"}}), "x: no program lived long enough to be judged")
}

func TestChildrenAreChosenByName(t *testing.T) {
	o := Options{Lasts: time.Hour, Seed: 7, Only: []string{"rollouts", "storm"}}
	some, err := o.chosen()
	require.NoError(t, err)
	require.Len(t, some, 2)
	assert.Equal(t, []string{"-lasts", "1h0m0s", "-seed", "7"}, some[1].args)
	o.Only = []string{"calm"}
	_, err = o.chosen()
	require.EqualError(t, err, `there is no long test "calm"`)
}
