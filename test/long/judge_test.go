package long

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

var start = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// life samples one program four times a minute, from a minute on, for some minutes; of says its figures at a minute.
func life(program string, pid, from, minutes int, of func(minute float64) map[fleet.Figure]float64) []fleet.Sample {
	var all []fleet.Sample
	for n := range minutes*4 + 1 {
		at := start.Add(time.Duration(from)*time.Minute + time.Duration(n)*15*time.Second)
		all = append(all, fleet.Sample{At: at, Program: program, PID: pid, Figures: of(float64(n) / 4)})
	}
	return all
}

// figure returns the figures of a life with one that changes in an hour.
func figure(name fleet.Figure, first, last float64) func(minute float64) map[fleet.Figure]float64 {
	return func(minute float64) map[fleet.Figure]float64 {
		return map[fleet.Figure]float64{name: first + (last-first)*minute/60}
	}
}

func TestWhatGrowsIsFound(t *testing.T) {
	const agent, server = "agent of c1", "kube-apiserver of hub"
	warm := func(minute float64) map[fleet.Figure]float64 {
		return map[fleet.Figure]float64{fleet.Memory: min(minute, 5) * 10 * mebibyte}
	}
	saw := func(minute float64) map[fleet.Figure]float64 {
		return map[fleet.Figure]float64{fleet.Stored: float64(int(minute)%5+1) * 4 * mebibyte}
	}
	spike := func(minute float64) map[fleet.Figure]float64 {
		if minute > 58 {
			return map[fleet.Figure]float64{fleet.Goroutines: 900}
		}
		return map[fleet.Figure]float64{fleet.Goroutines: 100}
	}
	for sentence, c := range map[string]struct {
		program string
		figures func(float64) map[fleet.Figure]float64
		minutes int
		counts  bool
		grown   bool
	}{
		"it is flat":                             {agent, figure(fleet.Memory, 40*mebibyte, 40*mebibyte), 60, true, false},
		"it grows by less than is allowed":       {agent, figure(fleet.Memory, 40*mebibyte, 55*mebibyte), 60, true, false},
		"it grows by more":                       {agent, figure(fleet.Memory, 40*mebibyte, 80*mebibyte), 60, true, true},
		"it grows by more, and is not ours":      {server, figure(fleet.Memory, 300*mebibyte, 360*mebibyte), 60, true, false},
		"a server that grows all the time":       {server, figure(fleet.Memory, 300*mebibyte, 500*mebibyte), 60, true, true},
		"it shrinks":                             {agent, figure(fleet.Memory, 90*mebibyte, 40*mebibyte), 60, true, false},
		"it grows while it warms up":             {agent, warm, 60, true, false},
		"its life is too short":                  {agent, figure(fleet.Memory, 40*mebibyte, 400*mebibyte), 14, false, false},
		"its life is just long enough":           {agent, figure(fleet.Memory, 40*mebibyte, 400*mebibyte), 15, true, true},
		"goroutines leak":                        {agent, figure(fleet.Goroutines, 200, 280), 60, true, true},
		"a spike of goroutines at the end":       {agent, spike, 60, true, false},
		"files leak":                             {agent, figure(fleet.OpenFiles, 20, 60), 60, true, true},
		"watches leak":                           {server, figure(fleet.Watches, 100, 140), 60, true, true},
		"what is stored is compacted again":      {"etcd of hub", saw, 60, true, false},
		"what is stored grows in all compaction": {"etcd of hub", figure(fleet.Stored, 10*mebibyte, 30*mebibyte), 60, true, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			lives := Judge(life(c.program, 7, 0, c.minutes, c.figures), DefaultLimits())
			require.Len(t, lives, 1)
			assert.Equal(t, c.counts, len(lives[0].Trends) > 0)
			grown := false
			for _, trend := range lives[0].Trends {
				grown = grown || trend.Grown
			}
			assert.Equal(t, c.grown, grown, "%+v", lives[0].Trends)
		})
	}
}

func TestEachLifeIsJudgedByItself(t *testing.T) {
	samples := append(
		life("hub manager", 2, 30, 20, figure(fleet.Memory, 70*mebibyte, 70*mebibyte)),
		append(life("hub manager", 1, 0, 29, figure(fleet.Memory, 40*mebibyte, 40*mebibyte)),
			life("agent of c1", 3, 0, 2, figure(fleet.Memory, mebibyte, mebibyte))...)...)
	lives := Judge(samples, DefaultLimits())
	require.Len(t, lives, 3)
	assert.Equal(t, Life{Program: "agent of c1", Short: 1, Lasted: 2 * time.Minute}, lives[0])
	assert.Equal(t, 1, lives[1].PID, "the first life comes first")
	assert.Equal(t, map[fleet.Figure]Trend{fleet.Memory: {First: 40 * mebibyte, Last: 40 * mebibyte}}, lives[1].Trends)
	assert.Equal(t, map[fleet.Figure]Trend{fleet.Memory: {First: 70 * mebibyte, Last: 70 * mebibyte}}, lives[2].Trends)
}

func TestShortLivesAreJudgedTogether(t *testing.T) {
	for sentence, more := range map[string]float64{"each begins as the one before": 0, "each begins with more": 8 * mebibyte} {
		t.Run(sentence, func(t *testing.T) {
			var samples []fleet.Sample
			for n := range 10 {
				begins := 40*mebibyte + float64(n)*more
				samples = append(samples, life("hub manager", n, n*6, 5, figure(fleet.Memory, begins, begins+60*mebibyte))...)
			}
			lives := Judge(samples, DefaultLimits())
			require.Len(t, lives, 1)
			assert.Equal(t, 10, lives[0].Short)
			assert.Equal(t, 59*time.Minute, lives[0].Lasted)
			assert.Equal(t, more > 0, lives[0].Trends[fleet.Memory].Grown, "%+v", lives[0].Trends)
		})
	}
}

func TestLivesThatGetLongerHaveNotGrown(t *testing.T) {
	var samples []fleet.Sample
	young := func(minute float64) map[fleet.Figure]float64 {
		return map[fleet.Figure]float64{fleet.Watches: min(120, 60+40*minute)}
	}
	for n, from := 0, 0; n < 20; n++ {
		lasts := 2
		if n >= 15 {
			lasts = 6
		}
		samples, from = append(samples, life("kube-apiserver of c1", n, from, lasts, young)...), from+lasts
	}
	lives := Judge(samples, DefaultLimits())
	require.Len(t, lives, 1)
	assert.Equal(t, map[fleet.Figure]Trend{fleet.Watches: {First: 120, Last: 120}}, lives[0].Trends)
}

func TestAFigureThatWasAwayMostOfTheTimeSaysNothing(t *testing.T) {
	lives := Judge(life("etcd of hub", 1, 0, 60, func(minute float64) map[fleet.Figure]float64 {
		if minute < 10 {
			return map[fleet.Figure]float64{fleet.Stored: 1, fleet.OpenFiles: 10}
		}
		return map[fleet.Figure]float64{fleet.OpenFiles: 10}
	}), DefaultLimits())
	require.Len(t, lives, 1)
	assert.Equal(t, map[fleet.Figure]Trend{fleet.OpenFiles: {First: 10, Last: 10}}, lives[0].Trends)
}
