package report

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const benchmark = `go run ./test/bench/cmd/bench -works 50
figure                                   measured                budget
200 works x 10 objects                   3.956s, 3.64x of 1.086s bare  1.5x     missed
requests to the cluster                  1.20                    1.2
a chart: install beside a template       1.72x of 14.807s
install beside that, processor           1.38ms a request, 3.8x
`

func TestRowsOfWhatCommandsPrint(t *testing.T) {
	for sentence, c := range map[string]struct {
		out  string
		want []Row
	}{
		"a table of a benchmark": {benchmark, []Row{
			{"figure", "measured; budget"}, {"200 works x 10 objects", "3.956s, 3.64x of 1.086s bare; 1.5x; missed"},
			{"requests to the cluster", "1.20; 1.2"}, {"a chart: install beside a template", "1.72x of 14.807s"},
			{"install beside that, processor", "1.38ms a request, 3.8x"},
		}},
		"rows that are indented": {"storm, seed 7  1m\n    works written     12\n  violations   0\n", []Row{
			{"storm, seed 7", "1m"}, {"works written", "12"}, {"violations", "0"},
		}},
		"a test that logs": {"=== RUN   TestADay\n    day_test.go:56: 15 clusters x 3 add-ons\n--- PASS: TestADay (2.00s)\nPASS\nok  \texample.com/virtual\t2.5s\n", []Row{
			{"15 clusters x 3 add-ons", ""}, {"example.com/virtual", "ok, 2.5s"},
		}},
		"nothing of note": {"go run ./x\nDone.\n", nil},
	} {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, c.want, Rows(c.out)) })
	}
}

func TestRatios(t *testing.T) {
	for value, want := range map[string]float64{
		"3.956s, 3.64x of 1.086s bare; 1.5x; missed": 3.64, "1.72x of 14.807s": 1.72, "1.38ms a request, 3.8x": 3.8,
		"1.20; 1.2": 0, "12; 1.5x": 0, "0x10 of it": 0, "": 0,
	} {
		got, is := Ratio(value)
		assert.Equal(t, want > 0, is, value)
		assert.InDelta(t, want, got, 0, value)
	}
}

func TestOnlyWhatIsBeyondTheNoiseIsAChange(t *testing.T) {
	of := func(least, most float64) Range { return Range{Least: least, Most: most, Runs: 5} }
	assert.Equal(t, "within the noise", Change(of(1, 2), of(1.9, 3)))
	assert.Equal(t, "within the noise", Change(of(1, 2), of(2, 3)))
	assert.Equal(t, "worse", Change(of(1, 2), of(2.1, 3)))
	assert.Equal(t, "better", Change(of(2, 3), of(1, 1.9)))
}

func TestAReportTellsWhatFailedAndGoesOn(t *testing.T) {
	parts := []Part{
		{"Games", []string{"make", "fleets", "FLEETS_FLAGS=-seed 7"}, 1}, {"The agent", []string{"make", "bench-agent"}, 3},
	}
	played := 0
	run := func(_ context.Context, command []string) (string, error) {
		if played++; command[1] == "fleets" {
			return strings.Repeat("noise\n", 100) + "row | a  1\nthe end\n", errors.New("exit status 1")
		}
		return strings.Replace(benchmark, "3.64x", []string{"3.64x", "3.00x", "4.00x"}[played-2], 1), nil
	}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { now = now.Add(time.Minute); return now }
	r := &Report{Date: now, Commit: "abc", Seed: 7, Machine: []Row{{"memory", "1 kB"}}}
	err := r.Play(t.Context(), parts, run, clock, io.Discard)
	require.EqualError(t, err, "Games: exit status 1")
	assert.Equal(t, 4, played)
	require.Len(t, r.Parts, 2)
	assert.Len(t, strings.Split(r.Parts[0].Failed, "\n"), maxEnd)
	assert.Equal(t, Range{Name: "200 works x 10 objects", Least: 3, Most: 4, Runs: 3}, r.Parts[1].Ranges()[0])

	last := &Report{Commit: "old", Parts: []Result{{Part: parts[1], Tables: [][]Row{{{"200 works x 10 objects", "2s, 2.50x of 1s bare"}}}}}}
	text := r.Markdown(last)
	for _, line := range []string{
		"| memory | 1 kB |", "| seed | 7 |", "| the agent: 200 works x 10 objects | 2.50x | 3.00 to 4.00x | worse |",
		"| the agent: a chart: install beside a template |  | 1.72 to 1.72x |  |",
		"`make fleets FLEETS_FLAGS='-seed 7'`, 1m0s.", "**It failed.** The end of its output:", `| row \| a | 1 |`, "`make bench-agent`, 1m0s for 3 runs, of which this is the first.",
		"The report before is of 0001-01-01, commit old.",
	} {
		assert.Contains(t, text, line+"\n", line)
	}
	assert.Contains(t, r.Markdown(nil), "There was no report before.")
	r.Parts = r.Parts[:1]
	assert.NotContains(t, r.Markdown(nil), "Beside", "nothing is compared")
}

func TestAReportThatIsInterruptedIsNone(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	run := func(context.Context, []string) (string, error) {
		stop(errors.New("a person stopped it"))
		return "", errors.New("signal: interrupt")
	}
	r := &Report{}
	err := r.Play(ctx, Parts(7, 5), run, time.Now, io.Discard)
	require.EqualError(t, err, `playing "Games: decisions of the hub manager about generated fleets": a person stopped it`)
	assert.Empty(t, r.Parts)
}
