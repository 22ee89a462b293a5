package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
	"github.com/spokelet/spokelet/test/monitoring/dashboards"
)

func TestValuesAreShortWithTheirUnit(t *testing.T) {
	for _, tc := range []struct {
		unit  string
		value float64
		shown string
	}{
		{"short", 0, "0"}, {"short", 12, "12"}, {"short", 1234, "1.2 K"}, {"short", 2.5e6, "2.5 Mil"},
		{"none", 0.01234, "0.012"}, {"none", -0.0001, "0"},
		{"percentunit", 1, "100%"}, {"percentunit", 0.9756, "97.6%"},
		{"s", 0, "0 s"}, {"s", 0.00002, "20 µs"}, {"s", 0.25, "250 ms"}, {"s", 90, "1.5 min"}, {"s", 86400, "24 h"},
		{"s", 364 * 86400, "364 days"}, {"s", 3 * 365 * 86400, "3 years"}, {"s", -7200, "-2 h"},
		{"bytes", 512, "512 B"}, {"bytes", 40 << 20, "40 MiB"}, {"ops", 1.5, "1.5 ops/s"}, {"reqps", 20, "20 req/s"},
	} {
		assert.Equal(t, tc.shown, format(tc.unit, tc.value), "%s %v", tc.unit, tc.value)
	}
}

func TestScalesHaveRoundValuesUpToAllThatIsDrawn(t *testing.T) {
	assert.Equal(t, []float64{0, 10, 20, 30, 40}, ticksOf(40, "short"))
	assert.Equal(t, []float64{0, 20, 40, 60}, ticksOf(41, "short"))
	assert.Equal(t, []float64{0, 16, 32, 48, 64}, ticksOf(50, "bytes"))
	assert.Equal(t, []float64{0, 60, 120, 180, 240}, ticksOf(230, "s"))
	for _, high := range []float64{0, 0.003, 0.7, 1, 9, 99, 12345, 3e9} {
		for _, unit := range []string{"short", "bytes", "s"} {
			ticks := ticksOf(high, unit)
			assert.GreaterOrEqual(t, ticks[len(ticks)-1], high*0.999)
			assert.Less(t, len(ticks), 8, "%v %s", high, unit)
			assert.Greater(t, len(ticks), 2, "%v %s", high, unit)
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	assert.Equal(t, "short", fit("short", 12, 200))
	cut := fit("a text that is far too long for its place", 12, 80)
	assert.True(t, strings.HasSuffix(cut, "…"))
	assert.LessOrEqual(t, wide(cut, 12), 80.0)
}

func TestTextsAreReadOnTheirColour(t *testing.T) {
	assert.Equal(t, sheet, on("#0072B2"))
	assert.Equal(t, ink, on("#F0E442"))
	assert.Equal(t, ink, on("none"))
}

func steps() dashboard.Thresholds {
	one := 1.0
	return dashboard.Thresholds{Steps: []dashboard.Step{{Color: "#0072B2"}, {Color: "#D55E00", Value: &one}}}
}

// panel is a panel with an override for the field a.
func panel(kind string) dashboard.Panel {
	return dashboard.Panel{
		Type: kind, Title: "T", Targets: []dashboard.Target{{RefID: "A"}, {RefID: "B"}},
		Options: map[string]any{"colorMode": "background_solid", "graphMode": "area"},
		FieldConfig: &dashboard.FieldConfig{
			Defaults: dashboard.Field{
				Unit: "short", Thresholds: steps(),
				Mappings: []dashboard.Mapping{{Options: map[string]dashboard.MappedText{"0": {Text: "away"}}}},
			},
			Overrides: []dashboard.Override{
				{Matcher: dashboard.Matcher{Options: "a"}, Properties: []dashboard.Property{
					{ID: "displayName", Value: "A & co"}, {ID: "color", Value: map[string]any{"fixedColor": "#CC79A7"}},
				}},
				{Matcher: dashboard.Matcher{Options: "Value #B"}, Properties: []dashboard.Property{
					{ID: "displayName", Value: "second"}, {ID: "custom.cellOptions", Value: nil}, {ID: "unit", Value: "s"},
				}},
			},
		},
	}
}

func TestAFieldIsShownByItsOverride(t *testing.T) {
	f := fieldOf(panel("stat"), "a")
	assert.Equal(t, "A & co", f.name)
	assert.Equal(t, "#CC79A7", f.Color.FixedColor)
	assert.Equal(t, "away", f.show(0))
	assert.Equal(t, "#0072B2", f.color(0.5))
	assert.Equal(t, "#D55E00", f.color(1))
	assert.Equal(t, "b", fieldOf(panel("stat"), "b").name)
}

// noon begins all that is drawn here.
func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// series is a series with a value every thirty seconds; one that is not a number is a gap.
func series(name string, values ...float64) dashboards.Series {
	s := dashboards.Series{Name: name, Labels: map[string]string{"addon": name}}
	for i, v := range values {
		at := noon().Add(time.Duration(i) * 30 * time.Second)
		s.Points = append(s.Points, promql.FPoint{T: at.UnixMilli(), F: v})
	}
	return s
}

func drawn() *canvas {
	return &canvas{asker: dashboards.Asker{Span: dashboards.Span{
		From: noon(), To: noon().Add(10 * time.Minute), Step: 30 * time.Second,
	}}}
}

func TestASeriesIsDrawnInPieces(t *testing.T) {
	s := series("a", 1, 2, math.NaN(), 3)
	s.Points = append(s.Points, promql.FPoint{T: noon().Add(5 * time.Minute).UnixMilli(), F: 4})
	var lengths []int
	for _, piece := range drawn().pieces(s) {
		lengths = append(lengths, len(piece))
	}
	assert.Equal(t, []int{2, 1, 1}, lengths)
}

func TestAnswersAreJoinedByTheirLabels(t *testing.T) {
	table := join(answers{{series("logs", 1), series("metrics", 2)}, {series("metrics", 3)}})
	assert.Equal(t, []string{"addon"}, table.labels)
	assert.Equal(t, [][]string{{"logs"}, {"metrics"}}, table.rows)
	assert.Equal(t, []map[int]float64{{0: 1}, {0: 2, 1: 3}}, table.values)
}

// Each kind of panel is XML that has what a person reads.
func TestPanelsHaveWhatAPersonReads(t *testing.T) {
	got := answers{{series("a", 1, 2, 3)}, {series("b", 5, 4, 3)}}
	b := box{0, 0, 500, 250}
	for kind, tc := range map[string]struct {
		draw func(*canvas, dashboard.Panel)
		has  []string
	}{
		"stat":       {func(c *canvas, p dashboard.Panel) { c.stat(p, b, got) }, []string{">3<", sheet}},
		"timeseries": {func(c *canvas, p dashboard.Panel) { c.timeseries(p, b, got) }, []string{"A &amp; co", ">b<", ">12:04<", "#CC79A7"}},
		"bargauge":   {func(c *canvas, p dashboard.Panel) { c.bargauge(p, b, got) }, []string{"A &amp; co", ">3<"}},
		"table":      {func(c *canvas, p dashboard.Panel) { c.table(p, b, got) }, []string{">addon<", ">second<", ">3 s<", ">a<"}},
	} {
		t.Run(kind, func(t *testing.T) {
			c := drawn()
			tc.draw(c, panel(kind))
			for _, part := range tc.has {
				assert.Contains(t, c.String(), part)
			}
			decoder := xml.NewDecoder(strings.NewReader("<svg>" + c.String() + "</svg>"))
			for {
				_, err := decoder.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
			}
		})
	}
}

func TestStackedSeriesStandOnEachOther(t *testing.T) {
	p := panel("timeseries")
	p.FieldConfig.Defaults.Custom = map[string]any{"stacking": map[string]any{"mode": "normal"}}
	lines := drawnLines(p, answers{{series("b", 2, 2), series("a", 1, 4)}})
	assert.Equal(t, "A & co", lines[0].name, "lines are in the order of names")
	assert.InDelta(t, 6, highest(lines, true), 1e-9)
	assert.InDelta(t, 4, highest(lines, false), 1e-9)
}
