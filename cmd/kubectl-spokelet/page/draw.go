package page

import (
	"fmt"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// segment is a part of a bar, in percent of its width.
type segment struct {
	Class, Word string
	Count       int
	X, Width    string
}

// bar divides a bar by counts of states, in their order.
func bar[S ~string](order []S, counts map[S]int) []segment {
	all := 0
	for _, state := range order {
		all += counts[state]
	}
	var segments []segment
	at := 0
	for _, state := range order {
		n := counts[state]
		if n == 0 {
			continue
		}
		segments = append(segments, segment{
			Class: class(state), Word: string(state), Count: n, X: percent(at, all), Width: percent(n, all),
		})
		at += n
	}
	return segments
}

func percent(n, all int) string { return fmt.Sprintf("%.2f%%", 100*float64(n)/float64(max(all, 1))) }

// barOrder are the standings from the left of a bar to its right.
func barOrder() []report.Standing {
	return []report.Standing{
		report.StandsWell, report.StandsMoving, report.StandsWaiting, report.StandsAbsent, report.StandsBehind,
		report.StandsBadly,
	}
}

// stageOrder are the stages from the left to the right.
func stageOrder() []report.Stage {
	return []report.Stage{
		report.StageComplete, report.StageFailed, report.StageMoving, report.StageWaiting, report.StageAbsent,
	}
}

// maxCells is how many clusters of a wave are drawn one by one.
const maxCells = 400

// wave is a wave as it is drawn.
type wave struct {
	Name string
	All  int
	Bar  []segment
	// Cells are its clusters; none where they are too many.
	Cells []report.Moved
}

func drawn(w report.Wave) wave {
	counts := map[report.Stage]int{}
	for _, one := range w.Clusters {
		counts[one.Stage]++
	}
	d := wave{Name: w.Name, All: len(w.Clusters), Bar: bar(stageOrder(), counts)}
	if len(w.Clusters) <= maxCells {
		d.Cells = w.Clusters
	}
	return d
}

const (
	// slots and height are the measures of the picture of a course, in its own units; each slot is ten wide.
	slots, height = 48, 80
)

// course is the course of a rollout as a picture: how many clusters reached which stage in each of some spans of time.
type course struct {
	From, To time.Time
	Most     int
	// Each is how long the time of one column is.
	Each    time.Duration
	Columns []column
}

// column is one span of time, with the clusters that reached a stage in it.
type column struct {
	At    time.Time
	X     int
	Parts []columnPart
}

// columnPart is a part of a column.
type columnPart struct {
	Class, Word string
	Count       int
	Y, Height   string
}

// drawnCourse draws a course until a time; nil for one without an event.
func drawnCourse(all []report.Reached, until time.Time) *course {
	if len(all) == 0 {
		return nil
	}
	c := &course{From: all[0].At, To: all[len(all)-1].At}
	if until.After(c.To) {
		c.To = until
	}
	span := max(c.To.Sub(c.From)/slots, time.Second)
	c.Each = span
	counts := make([]map[report.Stage]int, slots)
	for _, one := range all {
		n := min(int(one.At.Sub(c.From)/span), slots-1)
		if counts[n] == nil {
			counts[n] = map[report.Stage]int{}
		}
		counts[n][one.Stage]++
	}
	sums := make([]int, slots)
	for n := range counts {
		for _, count := range counts[n] {
			sums[n] += count
		}
		c.Most = max(c.Most, sums[n])
	}
	for n := range counts {
		if sums[n] == 0 {
			continue
		}
		col := column{At: c.From.Add(time.Duration(n) * span), X: n * 10}
		top := float64(height)
		for _, stage := range stageOrder() {
			count := counts[n][stage]
			if count == 0 {
				continue
			}
			tall := float64(height) * float64(count) / float64(c.Most)
			top -= tall
			col.Parts = append(col.Parts, columnPart{
				Class: class(stage), Word: string(stage), Count: count, Y: fmt.Sprintf("%.1f", top),
				Height: fmt.Sprintf("%.1f", tall),
			})
		}
		c.Columns = append(c.Columns, col)
	}
	return c
}
