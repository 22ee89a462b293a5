package picture

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
)

// field says how the values of a series or a column are shown.
type field struct {
	dashboard.Field

	// name is what a person reads as its name.
	name string
	// filled says that a cell has the colour of its value.
	filled bool
}

// fieldOf returns how the field of a name is shown in a panel.
func fieldOf(p dashboard.Panel, name string) field {
	f := field{Field: p.FieldConfig.Defaults, name: name}
	for _, o := range p.FieldConfig.Overrides {
		if o.Matcher.Options != name {
			continue
		}
		for _, property := range o.Properties {
			f.set(property)
		}
	}
	return f
}

// set applies one property of an override.
func (f *field) set(p dashboard.Property) {
	switch p.ID {
	case "displayName":
		read(p.Value, &f.name)
	case "unit":
		read(p.Value, &f.Unit)
	case "color":
		read(p.Value, &f.Color)
	case "thresholds":
		f.Thresholds = dashboard.Thresholds{}
		read(p.Value, &f.Thresholds)
	case "mappings":
		f.Mappings = nil
		read(p.Value, &f.Mappings)
	case "custom.cellOptions":
		f.filled = true
	}
}

// read reads a value that JSON left without a type. What does not fit leaves the target as it is.
func read(value, into any) {
	if content, err := json.Marshal(value); err == nil {
		_ = json.Unmarshal(content, into)
	}
}

// mapped returns the text of a value that has one.
func (f field) mapped(value string) (string, bool) {
	for _, m := range f.Mappings {
		if t, is := m.Options[value]; is {
			return t.Text, true
		}
	}
	return value, false
}

// show returns what a person reads.
func (f field) show(value float64) string {
	if t, is := f.mapped(strconv.FormatFloat(value, 'f', -1, 64)); is {
		return t
	}
	return format(f.Unit, value)
}

// color is the colour of a value by the thresholds.
func (f field) color(value float64) string {
	color := ""
	for _, s := range f.Thresholds.Steps {
		if s.Value == nil || value >= *s.Value {
			color = s.Color
		}
	}
	return color
}

// format writes a value with a unit, as short as Grafana does.
func format(unit string, v float64) string {
	switch unit {
	case "percentunit":
		return digits(v*100, 1) + "%"
	case "s":
		return duration(v)
	case "bytes":
		return scaled(v, 1024, []string{" B", " KiB", " MiB", " GiB", " TiB"})
	case "ops":
		return number(v) + " ops/s"
	case "reqps":
		return number(v) + " req/s"
	}
	return number(v)
}

// number writes a number.
func number(v float64) string {
	if math.Abs(v) < 1 {
		return digits(v, 3)
	}
	if math.Abs(v) < 10 {
		return digits(v, 2)
	}
	return scaled(v, 1000, []string{"", " K", " Mil", " Bil"})
}

// scaled writes a value in the greatest of some units that is not above it.
func scaled(v, base float64, units []string) string {
	at := 0
	for math.Abs(v) >= base && at < len(units)-1 {
		v, at = v/base, at+1
	}
	return digits(v, 1) + units[at]
}

// duration writes seconds.
func duration(v float64) string {
	sign, seconds := "", v
	if v < 0 {
		sign, seconds = "-", -v
	}
	for _, u := range []struct {
		from  float64
		scale float64
		name  string
	}{
		{2 * 365 * 86400, 365 * 86400, " years"}, {2 * 86400, 86400, " days"}, {3600, 3600, " h"}, {60, 60, " min"},
		{1, 1, " s"}, {0.001, 0.001, " ms"},
	} {
		if seconds >= u.from {
			return sign + digits(seconds/u.scale, 1) + u.name
		}
	}
	if seconds == 0 {
		return "0 s"
	}
	return sign + digits(seconds*1e6, 0) + " µs"
}

// digits writes a number with so many digits after the dot at most.
func digits(v float64, most int) string {
	s := fmt.Sprintf("%.*f", most, v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}
