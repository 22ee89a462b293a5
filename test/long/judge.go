package long

import (
	"cmp"
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
	// Growth is the share of the first median by which the last one may be larger, beyond the constant of its figure.
	Growth float64
}

// DefaultLimits are those for an hour: a tenth, in lives of fifteen minutes.
func DefaultLimits() Limits {
	return Limits{WarmUp: 5 * time.Minute, Life: 10 * time.Minute, Growth: 0.1}
}

// leastSamples is how many samples of a figure a quarter of a life has, or it says nothing.
const leastSamples = 3

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

// Life is one life of a program.
type Life struct {
	Program string
	PID     int
	// Lasted is from its first sample to its last one.
	Lasted time.Duration
	// Counts reports that it was long enough to be judged.
	Counts bool
	// Trends are its figures; none if it does not count.
	Trends map[fleet.Figure]Trend
}

// Trend is what became of a figure.
type Trend struct {
	// First and Last are the medians of the first and the last quarter.
	First, Last float64
	// Grown reports that it is not flat.
	Grown bool
}

// Judge judges the lives of all programs in the samples of a fleet.
func Judge(samples []fleet.Sample, limits Limits) []Life {
	type key struct {
		program string
		pid     int
	}
	lives := map[key][]fleet.Sample{}
	for _, one := range samples {
		of := key{one.Program, one.PID}
		lives[of] = append(lives[of], one)
	}
	all := make([]Life, 0, len(lives))
	began := map[int]time.Time{}
	for of, own := range lives {
		slices.SortFunc(own, func(a, b fleet.Sample) int { return a.At.Compare(b.At) })
		began[of.pid] = own[0].At
		all = append(all, judgeLife(of.program, of.pid, own, limits))
	}
	slices.SortFunc(all, func(a, b Life) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), began[a.PID].Compare(began[b.PID]))
	})
	return all
}

// judgeLife judges one life by its samples, which are in their order.
func judgeLife(program string, pid int, samples []fleet.Sample, limits Limits) Life {
	first, last := samples[0].At, samples[len(samples)-1].At
	life := Life{Program: program, PID: pid, Lasted: last.Sub(first)}
	if life.Lasted < limits.WarmUp+limits.Life {
		return life
	}
	life.Counts, life.Trends = true, map[fleet.Figure]Trend{}
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
		if len(early[figure]) < leastSamples || len(late[figure]) < leastSamples {
			continue
		}
		trend := Trend{First: median(early[figure]), Last: median(late[figure])}
		trend.Grown = trend.Last > trend.First*(1+limits.Growth)+slack(program, figure)
		life.Trends[figure] = trend
	}
	return life
}

// median sorts values and returns the one in the middle.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
