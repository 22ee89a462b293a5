package picture

import (
	"fmt"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
)

// bargauge draws a bar for each series.
func (c *canvas) bargauge(p dashboard.Panel, b box, got answers) {
	all := got.all()
	high := 0.0
	for _, s := range all {
		value, _ := s.Last()
		high = max(high, value)
	}
	if p.FieldConfig.Defaults.Max != nil {
		high = *p.FieldConfig.Defaults.Max
	}
	if high <= 0 {
		high = 1
	}
	each := min(44, b.h/float64(min(len(all), int(b.h/30))))
	shown := min(len(all), int(b.h/each+0.001))
	numbers := 0.0
	for _, s := range all[:shown] {
		value, _ := s.Last()
		numbers = max(numbers, wide(fieldOf(p, s.Name).show(value), 13)+10)
	}
	for i, s := range all[:shown] {
		f := fieldOf(p, s.Name)
		value, _ := s.Last()
		color := f.Color.FixedColor
		if color == "" {
			color = f.color(value)
		}
		y := b.y + float64(i)*each
		c.write(text{point{b.x, y + 11}, begin, 11, ink, false}, f.name, b.w)
		bar := box{b.x, y + 15, b.w - numbers, each - 21}
		c.rect(bar, faint, "")
		bar.w *= min(max(value/high, 0.004), 1)
		c.rect(bar, color, "")
		c.write(text{point{b.x + b.w, y + 15 + (each-21)/2 + 5}, end, 13, ink, true}, f.show(value), numbers)
	}
	if more := len(all) - shown; more > 0 {
		c.write(text{point{b.x + b.w, b.y + b.h}, end, 10.5, soft, false}, fmt.Sprint("and ", more, " others"), b.w)
	}
}
