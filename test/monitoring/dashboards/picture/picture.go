package picture

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
	"github.com/spokelet/spokelet/test/monitoring/dashboards"
)

const (
	// width is that of a picture, and unit the height of a step of the grid.
	width = 1520.0
	unit  = 33.0
	// gap is between panels, and margin around all of them.
	gap    = 8.0
	margin = 14.0
	// head is the height of the title.
	head = 78.0
	// columns are those of the grid.
	columns = 24
)

// answers are the series of each query of a panel.
type answers [][]dashboards.Series

// canvas draws the panels of one dashboard.
type canvas struct {
	svg

	asker dashboards.Asker
}

// Draw draws a dashboard with the answers of an asker. chosen are the values that a person chose.
func Draw(
	ctx context.Context, asker dashboards.Asker, d dashboard.Document, chosen dashboards.Values,
) ([]byte, error) {
	c := &canvas{asker: asker}
	bottom := 0
	for _, p := range d.Panels {
		bottom = max(bottom, p.GridPos.Y+p.GridPos.H)
	}
	height := head + float64(bottom)*unit + margin
	c.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" font-family="%s" role="img">`,
		n(width), n(height), fonts)
	c.put(`<title>%s</title>`, d.Title)
	c.rect(box{0, 0, width, height}, paper, "")
	c.header(d, chosen)
	for _, p := range d.Panels {
		if err := c.panel(ctx, p); err != nil {
			return nil, fmt.Errorf("drawing panel %q of %s: %w", p.Title, d.UID, err)
		}
	}
	c.put(`</svg>`)
	return c.Bytes(), nil
}

// header writes the title, the time, and what is chosen.
func (c *canvas) header(d dashboard.Document, chosen dashboards.Values) {
	c.write(text{point{margin, 30}, begin, 20, ink, true}, d.Title, width/2)
	span := c.asker.Span
	times := span.From.UTC().Format("15:04") + " to " + span.To.UTC().Format("15:04") + " UTC"
	c.write(text{point{width - margin, 30}, end, 13, soft, false}, times, width/2)
	x := margin
	for _, v := range d.Templating.List {
		if v.Hide == 2 {
			continue
		}
		value := chosen[v.Name]
		switch {
		case v.Type == "datasource":
			value = "Prometheus"
		case value == "":
			value = "All"
		}
		label := wide(v.Label, 12) + 14
		name := wide(value, 12) + 18
		c.rect(box{x, 46, label, 24}, faint, border)
		c.rect(box{x + label, 46, name, 24}, sheet, border)
		c.write(text{point{x + 7, 62}, begin, 12, ink, true}, v.Label, label)
		c.write(text{point{x + label + 8, 62}, begin, 12, ink, false}, value, name)
		x += label + name + 12
	}
}

// place is where a panel is.
func place(g dashboard.GridPos) box {
	step := (width - 2*margin + gap) / columns
	return box{
		x: margin + float64(g.X)*step, y: head + float64(g.Y)*unit,
		w: float64(g.W)*step - gap, h: float64(g.H)*unit - gap,
	}
}

// panel draws a panel.
func (c *canvas) panel(ctx context.Context, p dashboard.Panel) error {
	b := place(p.GridPos)
	if p.Type == "row" {
		c.write(text{point{b.x, b.y + 18}, begin, 14, ink, true}, "▾ "+p.Title, b.w)
		return nil
	}
	var got answers
	for _, t := range p.Targets {
		series, err := c.asker.Target(ctx, t)
		if err != nil {
			return err
		}
		got = append(got, series)
	}
	fill := background(p, got)
	c.rect(b, fill, border)
	c.write(text{point{b.x + 9, b.y + 18}, begin, 12.5, on(fill), true}, p.Title, b.w-18)
	inner := box{b.x + 9, b.y + 26, b.w - 18, b.h - 33}
	if empty(got) {
		c.write(text{point{b.x + b.w/2, b.y + b.h/2 + 6}, middle, 13, soft, false}, "No data", b.w)
		return nil
	}
	switch p.Type {
	case "stat":
		c.stat(p, inner, got)
	case "timeseries":
		c.timeseries(p, inner, got)
	case "bargauge":
		c.bargauge(p, inner, got)
	case "table":
		c.table(p, inner, got)
	default:
		return fmt.Errorf("a panel of kind %s cannot be drawn", p.Type)
	}
	return nil
}

// background is the colour behind a panel: that of its value where a stat is drawn so.
func background(p dashboard.Panel, got answers) string {
	if all := got.all(); option(p, "colorMode") == "background_solid" && len(all) > 0 {
		value, _ := all[0].Last()
		return fieldOf(p, all[0].Name).color(value)
	}
	return sheet
}

func empty(got answers) bool {
	for _, series := range got {
		if len(series) > 0 {
			return false
		}
	}
	return true
}

// all returns the series of all queries.
func (a answers) all() []dashboards.Series {
	var all []dashboards.Series
	for _, series := range a {
		all = append(all, series...)
	}
	return all
}

// option reads an option of a panel.
func option(p dashboard.Panel, name string) string {
	value, is := p.Options[name].(string)
	if !is {
		return ""
	}
	return value
}

// stat draws one value, large, with what it was before.
func (c *canvas) stat(p dashboard.Panel, b box, got answers) {
	series := got.all()
	f, s := fieldOf(p, series[0].Name), series[0]
	value, _ := s.Last()
	content, color := f.show(value), f.color(value)
	if option(p, "textMode") == "name" {
		var names []string
		for _, one := range series {
			names = append(names, one.Name)
		}
		content = strings.Join(names, ", ")
	}
	if option(p, "colorMode") == "background_solid" {
		color = on(color)
	}
	if option(p, "graphMode") == "area" && len(s.Points) > 1 {
		c.spark(s, box{b.x - 8, b.y + b.h*0.66, b.w + 16, b.h*0.34 + 6}, color)
	}
	size := min(34, b.w*1.7/max(float64(len([]rune(content))), 1))
	c.write(text{point{b.x + b.w/2, b.y + b.h*0.36 + size*0.36}, middle, size, color, true}, content, b.w*1.2)
}

// spark draws the course of a value without a scale.
func (c *canvas) spark(s dashboards.Series, b box, color string) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range s.Points {
		low, high = min(low, p.F), max(high, p.F)
	}
	if high-low < 0.005*math.Abs(high) || math.IsNaN(high-low) {
		return // It did not change.
	}
	low -= (high - low) / 8
	scale := c.scale(b, low, high)
	for _, piece := range c.pieces(s) {
		var points []point
		for _, p := range piece {
			points = append(points, scale.at(p.T, p.F))
		}
		if len(points) < 2 {
			continue
		}
		last, first := points[len(points)-1], points[0]
		c.area(append(append([]point{}, points...), point{last.x, b.y + b.h}, point{first.x, b.y + b.h}), color, 0.18)
		c.line(points, color, 1.2, "")
	}
}
