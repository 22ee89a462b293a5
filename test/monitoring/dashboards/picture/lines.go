package picture

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
	"github.com/spokelet/spokelet/test/monitoring/dashboards"
)

// scale leads from times and values to places.
type scale struct {
	box

	from, to  int64
	low, high float64
}

func (c *canvas) scale(b box, low, high float64) scale {
	return scale{box: b, from: c.asker.Span.From.UnixMilli(), to: c.asker.Span.To.UnixMilli(), low: low, high: high}
}

func (s scale) at(t int64, v float64) point {
	return point{
		s.x + s.w*float64(t-s.from)/float64(max(s.to-s.from, 1)), s.y + s.h - s.h*(v-s.low)/(s.high-s.low),
	}
}

// pieces are the parts of a series without gaps.
func (c *canvas) pieces(s dashboards.Series) [][]promql.FPoint {
	var pieces [][]promql.FPoint
	var piece []promql.FPoint
	for _, p := range s.Points {
		gap := len(piece) > 0 && p.T-piece[len(piece)-1].T > 3*c.asker.Span.Step.Milliseconds()/2
		if gap || math.IsNaN(p.F) {
			pieces, piece = append(pieces, piece), nil
		}
		if !math.IsNaN(p.F) {
			piece = append(piece, p)
		}
	}
	return append(pieces, piece)
}

// palette are the colours of series that have none.
func palette() []string {
	return []string{"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8E8E8E", "#B8A900"}
}

// drawnLine is a series with how it is drawn.
type drawnLine struct {
	dashboards.Series

	field
	color, dash string
}

// drawnLines returns the series of a panel, by name, with their colours.
func drawnLines(p dashboard.Panel, got answers) []drawnLine {
	var lines []drawnLine
	free, colors := 0, palette()
	for _, series := range got {
		slices.SortFunc(series, func(a, b dashboards.Series) int { return strings.Compare(a.Name, b.Name) })
		for _, s := range series {
			l := drawnLine{Series: s, field: fieldOf(p, s.Name)}
			if l.color = l.Color.FixedColor; l.color == "" {
				l.color = colors[free%len(colors)]
				l.dash = []string{"", "5 3", "2 2", "8 3 2 3"}[free/len(colors)%4]
				free++
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// custom reads a setting of how lines are drawn.
func custom(p dashboard.Panel, name, of string) string {
	value := p.FieldConfig.Defaults.Custom[name]
	if inner, is := value.(map[string]any); is {
		value = inner[of]
	}
	found, is := value.(string)
	if !is {
		return ""
	}
	return found
}

// timeseries draws lines over time, with scales and a legend.
func (c *canvas) timeseries(p dashboard.Panel, b box, got answers) {
	lines := drawnLines(p, got)
	b.h -= c.legend(lines, b)
	stacked := custom(p, "stacking", "mode") == "normal"
	high := highest(lines, stacked)
	if f := p.FieldConfig.Defaults; f.Max != nil {
		high = max(high, *f.Max)
	}
	ticks := ticksOf(high, p.FieldConfig.Defaults.Unit)
	high = ticks[len(ticks)-1]
	left := 0.0
	for _, t := range ticks {
		left = max(left, wide(format(p.FieldConfig.Defaults.Unit, t), 10.5))
	}
	plot := c.scale(box{b.x + left + 8, b.y + 4, b.w - left - 12, b.h - 22}, 0, high)
	c.axes(p, plot, ticks)
	if stacked {
		c.stack(plot, lines)
		return
	}
	steps := custom(p, "lineInterpolation", "") == "stepAfter"
	for _, l := range lines {
		for _, piece := range c.pieces(l.Series) {
			c.line(course(plot, piece, steps), l.color, 1.8, l.dash)
		}
	}
	c.limits(p, plot)
}

// course is the way of a line.
func course(plot scale, piece []promql.FPoint, steps bool) []point {
	var points []point
	for i, v := range piece {
		at := plot.at(v.T, v.F)
		if steps && i > 0 {
			points = append(points, point{at.x, points[len(points)-1].y})
		}
		points = append(points, at)
	}
	if len(points) == 1 {
		points = append(points, point{points[0].x + 2, points[0].y})
	}
	return points
}

// highest is the greatest value that is drawn.
func highest(lines []drawnLine, stacked bool) float64 {
	high, sums := 0.0, map[int64]float64{}
	for _, l := range lines {
		for _, p := range l.Points {
			if math.IsNaN(p.F) || math.IsInf(p.F, 0) {
				continue
			}
			sums[p.T] += p.F
			high = max(high, p.F)
			if stacked {
				high = max(high, sums[p.T])
			}
		}
	}
	return high
}

// ticksOf are round values from zero to above a value.
func ticksOf(high float64, unit string) []float64 {
	if high <= 0 {
		high = 1
	}
	for _, whole := range []float64{86400, 3600, 60} {
		if unit == "s" && high > 2*whole {
			ticks := ticksOf(high/whole, "")
			for i := range ticks {
				ticks[i] *= whole
			}
			return ticks
		}
	}
	base := 10.0
	if unit == "bytes" {
		base = 2
	}
	step := math.Pow(base, math.Floor(math.Log(high/3)/math.Log(base)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if base == 10 && step*factor*4 >= high*0.999 {
			step *= factor
			break
		}
	}
	ticks := []float64{0}
	for last := 0.0; last < high*0.999; {
		last += step
		ticks = append(ticks, last)
	}
	return ticks
}

// axes draws the scales.
func (c *canvas) axes(p dashboard.Panel, plot scale, ticks []float64) {
	for _, t := range ticks {
		at := plot.at(plot.from, t)
		c.line([]point{at, {plot.x + plot.w, at.y}}, faint, 1, "")
		c.write(text{point{plot.x - 6, at.y + 3.5}, end, 10.5, soft, false}, format(p.FieldConfig.Defaults.Unit, t), plot.w)
	}
	span := c.asker.Span
	every := span.To.Sub(span.From) / time.Duration(max(2, int(plot.w/75)))
	for _, minutes := range []int{1, 2, 5, 10, 15, 30, 60, 120, 360} {
		if round := time.Minute * time.Duration(minutes); round >= every {
			every = round
			break
		}
	}
	for t := span.From.Truncate(every).Add(every); !t.After(span.To); t = t.Add(every) {
		at := plot.at(t.UnixMilli(), 0)
		if at.x < plot.x+plot.w-14 {
			c.write(text{point{at.x, at.y + 15}, middle, 10.5, soft, false}, t.UTC().Format("15:04"), plot.w)
		}
	}
}

// limits draws the thresholds that are within the plot.
func (c *canvas) limits(p dashboard.Panel, plot scale) {
	if custom(p, "thresholdsStyle", "mode") != "dashed" {
		return
	}
	for _, s := range p.FieldConfig.Defaults.Thresholds.Steps {
		if s.Value != nil && *s.Value < plot.high {
			at := plot.at(plot.from, *s.Value)
			c.line([]point{at, {plot.x + plot.w, at.y}}, s.Color, 1.2, "6 4")
		}
	}
}

// stack draws each series above those before it.
func (c *canvas) stack(plot scale, lines []drawnLine) {
	below := map[int64]float64{}
	for _, l := range lines {
		for _, piece := range c.pieces(l.Series) {
			var top, bottom []point
			for _, v := range piece {
				bottom = append(bottom, plot.at(v.T, below[v.T]))
				below[v.T] += v.F
				top = append(top, plot.at(v.T, below[v.T]))
			}
			slices.Reverse(bottom)
			c.area(append(append([]point{}, top...), bottom...), l.color, 0.6)
			c.line(top, l.color, 1.2, "")
		}
	}
}

// legend writes the names of the series below a panel, and returns how high it is.
func (c *canvas) legend(lines []drawnLine, b box) float64 {
	const lineHeight, most = 15.0, 4
	type entry struct {
		drawnLine

		x float64
	}
	var rows [][]entry
	x := 0.0
	for _, l := range lines {
		need := min(wide(l.name, 10.5)+24, b.w)
		if len(rows) == 0 || x+need > b.w {
			rows, x = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], entry{l, x})
		x += need
	}
	shown := rows[:min(len(rows), most)]
	high := float64(len(shown)) * lineHeight
	for i, row := range shown {
		y := b.y + b.h - high + float64(i+1)*lineHeight - 3
		for _, e := range row {
			c.line([]point{{b.x + e.x, y - 3.5}, {b.x + e.x + 12, y - 3.5}}, e.color, 3, e.dash)
			c.write(text{point{b.x + e.x + 16, y}, begin, 10.5, ink, false}, e.name, b.w-e.x-16)
		}
	}
	return high + 4
}
