package long

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const mebibyte = 1 << 20

// Limits say which lives of a program count, and how much it may grow.
type Limits struct {
	// WarmUp is how much of the begin of a life is left out, and Life how long the rest must be.
	WarmUp, Life time.Duration
	// Growth is the share of the first value by which the last one may be larger, beyond the constant of its figure.
	Growth float64
}

// DefaultLimits are those for an hour: a tenth more, in a life of fifteen minutes at least.
func DefaultLimits() Limits {
	return Limits{WarmUp: 5 * time.Minute, Life: 10 * time.Minute, Growth: 0.1}
}

// rank is which value stands for those of a figure in a quarter: one below which a share of them is, if there are so
// many at least.
type rank struct {
	share float64
	least int
}

// A program that has just begun uses less, so that of several lives the higher values count, and it takes many.
var rankOfOne, rankOfMany = rank{share: 0.5, least: 3}, rank{share: 0.9, least: 20}

// slack is by how much a figure may grow besides its share.
func slack(program string, figure fleet.Figure) float64 {
	switch figure {
	case fleet.Memory:
		if isServer(program) {
			// They keep the latest events of each kind in memory, and map the file of the store, which has what was compacted.
			return 64 * mebibyte
		}
		return 8 * mebibyte
	case fleet.Goroutines:
		return 20
	case fleet.OpenFiles:
		return 10
	case fleet.Watches:
		return 5
	case fleet.Stored:
		// It has all that happened since the last compaction, five to ten minutes ago.
		return 8 * mebibyte
	}
	return 0
}

// isServer reports whether a program is one of a control plane, and not ours.
func isServer(program string) bool {
	return strings.HasPrefix(program, "kube-apiserver ") || strings.HasPrefix(program, "etcd ")
}

// Life is one life of a program, or all its lives that are too short to be judged by themselves.
type Life struct {
	Program string
	// PID is that of the one life; 0 for several.
	PID int
	// Short is how many lives these are that are each too short; 0 for one that is long enough.
	Short int
	// Lasted is from the first sample to the last one.
	Lasted time.Duration
	// Trends are the figures; none if all of it is too short.
	Trends map[fleet.Figure]Trend
}

// Trend holds what became of a figure.
type Trend struct {
	// First and Last are of the first and the last quarter: the median of one life, and percentile 90 of several, which
	// the youth of some lives does not lower.
	First, Last float64
	// Grown reports that it is not flat.
	Grown bool
}

// Judge judges all programs in the samples of a fleet, in the order of their names and lives. Lives of a program that
// are too short are judged as if they were one: when a new life needs more than those before it, what it finds has
// grown.
func Judge(samples []fleet.Sample, limits Limits) []Life {
	samples = slices.Clone(samples)
	slices.SortStableFunc(samples, func(a, b fleet.Sample) int { return a.At.Compare(b.At) })
	programs := map[string]map[int][]fleet.Sample{}
	for _, one := range samples {
		if programs[one.Program] == nil {
			programs[one.Program] = map[int][]fleet.Sample{}
		}
		programs[one.Program][one.PID] = append(programs[one.Program][one.PID], one)
	}
	var all []Life
	for _, program := range slices.Sorted(maps.Keys(programs)) {
		all = append(all, judgeProgram(program, programs[program], limits)...)
	}
	return all
}

// judgeProgram judges the lives of one program by the samples of each.
func judgeProgram(program string, lives map[int][]fleet.Sample, limits Limits) []Life {
	order := slices.SortedFunc(maps.Keys(lives), func(a, b int) int { return lives[a][0].At.Compare(lives[b][0].At) })
	var all []Life
	var short []fleet.Sample
	count := 0
	for _, pid := range order {
		lasted, trends := judge(program, lives[pid], limits, rankOfOne)
		if len(trends) == 0 {
			short, count = append(short, lives[pid]...), count+1
			continue
		}
		all = append(all, Life{Program: program, PID: pid, Lasted: lasted, Trends: trends})
	}
	if count > 0 {
		lasted, trends := judge(program, short, limits, rankOfMany)
		all = append(all, Life{Program: program, Short: count, Lasted: lasted, Trends: trends})
	}
	return all
}

// judge judges samples of a program, which are in their order: how long they lasted, and nothing more if that is too
// short.
func judge(program string, samples []fleet.Sample, limits Limits, by rank) (time.Duration, map[fleet.Figure]Trend) {
	first, last := samples[0].At, samples[len(samples)-1].At
	if last.Sub(first) < limits.WarmUp+limits.Life {
		return last.Sub(first), nil
	}
	trends := map[fleet.Figure]Trend{}
	warm := first.Add(limits.WarmUp)
	quarter := last.Sub(warm) / 4
	early, late := map[fleet.Figure][]float64{}, map[fleet.Figure][]float64{}
	for _, one := range samples {
		for figure, value := range one.Figures {
			if !one.At.Before(warm) && one.At.Before(warm.Add(quarter)) {
				early[figure] = append(early[figure], value)
			}
			if one.At.After(last.Add(-quarter)) {
				late[figure] = append(late[figure], value)
			}
		}
	}
	for figure := range maps.Keys(early) {
		if len(early[figure]) < by.least || len(late[figure]) < by.least {
			continue
		}
		trend := Trend{First: by.of(early[figure]), Last: by.of(late[figure])}
		trend.Grown = trend.Last > trend.First*(1+limits.Growth)+slack(program, figure)
		trends[figure] = trend
	}
	return last.Sub(first), trends
}

// of sorts values and returns the one that stands for them.
func (r rank) of(values []float64) float64 {
	slices.Sort(values)
	return values[int(float64(len(values))*r.share)]
}
