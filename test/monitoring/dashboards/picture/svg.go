package picture

import (
	"bytes"
	"fmt"
	"html"
	"strconv"
	"strings"
)

// Colours of a page in daylight.
const (
	paper  = "#F4F5F5"
	sheet  = "#FFFFFF"
	border = "#D8D9DA"
	faint  = "#E7E8E9"
	ink    = "#24292E"
	soft   = "#6E7681"
)

// fonts are what a machine may have.
const fonts = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"

// box is a part of the picture.
type box struct{ x, y, w, h float64 }

// svg is a picture that grows.
type svg struct{ bytes.Buffer }

func (s *svg) put(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// n writes a coordinate.
func n(v float64) string { return strconv.FormatFloat(float64(int(v*10+0.5))/10, 'f', -1, 64) }

// rect draws a rectangle. An edge may be empty.
func (s *svg) rect(b box, fill, edge string) {
	if edge != "" {
		edge = ` stroke="` + edge + `"`
	}
	s.put(`<rect x="%s" y="%s" width="%s" height="%s" rx="2" fill="%s"%s/>`,
		n(b.x), n(b.y), n(max(b.w, 0)), n(max(b.h, 0)), fill, edge)
}

// line draws a line of points; dash and more may be empty.
func (s *svg) line(points []point, color string, width float64, dash string) {
	if len(points) == 0 {
		return
	}
	if dash != "" {
		dash = ` stroke-dasharray="` + dash + `"`
	}
	s.put(`<polyline points="%s" fill="none" stroke="%s" stroke-width="%s"%s/>`, path(points), color, n(width), dash)
}

// area fills what is between points.
func (s *svg) area(points []point, color string, opacity float64) {
	if len(points) > 2 {
		s.put(`<polygon points="%s" fill="%s" fill-opacity="%.2f"/>`, path(points), color, opacity)
	}
}

// point is a place in the picture.
type point struct{ x, y float64 }

// path writes points without those that are on the way from one to the next one.
func path(points []point) string {
	var out []string
	for i, p := range points {
		if i > 0 && i < len(points)-1 && n(points[i-1].y) == n(p.y) && n(p.y) == n(points[i+1].y) {
			continue
		}
		out = append(out, n(p.x)+","+n(p.y))
	}
	return strings.Join(out, " ")
}

// Where a text begins.
const (
	begin  = "start"
	middle = "middle"
	end    = "end"
)

// text is a text with its size, colour and weight.
type text struct {
	at     point
	anchor string
	size   float64
	color  string
	bold   bool
}

// write writes a text, cut to a width.
func (s *svg) write(t text, content string, width float64) {
	weight := ""
	if t.bold {
		weight = ` font-weight="600"`
	}
	s.put(`<text x="%s" y="%s" font-size="%s" fill="%s" text-anchor="%s"%s>%s</text>`,
		n(t.at.x), n(t.at.y), n(t.size), t.color, t.anchor, weight, html.EscapeString(fit(content, t.size, width)))
}

// wide is about how wide a text is.
func wide(content string, size float64) float64 {
	units := 0.0
	for _, r := range content {
		switch {
		case strings.ContainsRune("iljtf.,:;|'!()[] /-", r):
			units += 0.36
		case strings.ContainsRune("mwMW%@", r):
			units += 0.88
		case r >= 'A' && r <= 'Z':
			units += 0.70
		default:
			units += 0.57
		}
	}
	return units * size
}

// fit cuts a text to a width.
func fit(content string, size, width float64) string {
	if wide(content, size) <= width {
		return content
	}
	runes := []rune(content)
	for len(runes) > 0 && wide(string(runes)+"…", size) > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// on is the colour of a text on a colour.
func on(color string) string {
	value, err := strconv.ParseUint(strings.TrimPrefix(color, "#"), 16, 32)
	if err != nil {
		return ink
	}
	r, g, b := float64(value>>16&255), float64(value>>8&255), float64(value&255)
	if 0.299*r+0.587*g+0.114*b > 150 {
		return ink
	}
	return sheet
}
