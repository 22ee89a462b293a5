package dashboards

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
	"github.com/spokelet/spokelet/test/monitoring/harness"
)

// Span is the time that is looked at, with its resolution.
type Span struct {
	From, To time.Time
	Step     time.Duration
}

// RateInterval is what Grafana has for $__rate_interval: four scrapes, or one more than the resolution.
func (s Span) RateInterval() time.Duration {
	return max(4*harness.ScrapeEvery, s.Step+harness.ScrapeEvery)
}

// Values are the values of variables. One that has none matches everything.
type Values map[string]string

// Asker asks the queries of a dashboard.
type Asker struct {
	Store *harness.Store
	Span  Span
	// Chosen are the values of the variables of the dashboard, see Choose.
	Chosen Values
}

// Choose returns an asker with the values of the variables of a dashboard: those that a person chose, and all there are
// for the others, as Grafana does.
func (a Asker) Choose(ctx context.Context, d dashboard.Document, chosen Values) (Asker, error) {
	a.Chosen = maps.Clone(chosen)
	if a.Chosen == nil {
		a.Chosen = Values{}
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" || a.Chosen[v.Name] != "" {
			continue
		}
		values, err := a.Variable(ctx, v)
		if err != nil {
			return a, err
		}
		if a.Chosen[v.Name] = v.AllValue; v.AllValue == "" {
			a.Chosen[v.Name] = "(" + strings.Join(values, "|") + ")"
		}
	}
	return a, nil
}

// Expand puts the values of variables into an expression, as Grafana does.
func (a Asker) Expand(expr string) string {
	expr = strings.ReplaceAll(expr, "$__rate_interval", a.Span.RateInterval().String())
	return ofVariable.ReplaceAllStringFunc(expr, func(found string) string {
		if value := a.Chosen[strings.Trim(found, "${}")]; value != "" {
			return value
		}
		return ".*"
	})
}

// Series is one series of an answer.
type Series struct {
	// Name is its legend.
	Name   string
	Labels map[string]string
	// Points are its values, in the order of time; there is one for an instant.
	Points []promql.FPoint
}

// Last returns the last value that is a number.
func (s Series) Last() (float64, bool) {
	for _, p := range slices.Backward(s.Points) {
		if !math.IsNaN(p.F) {
			return p.F, true
		}
	}
	return 0, false
}

// Target answers a query: the series that have any number.
func (a Asker) Target(ctx context.Context, t dashboard.Target) ([]Series, error) {
	matrix, err := a.matrix(ctx, t)
	if err != nil {
		return nil, err
	}
	var all []Series
	for _, m := range matrix {
		s := Series{Labels: m.Metric.Map(), Points: m.Floats}
		s.Name = inLegend.ReplaceAllStringFunc(t.LegendFormat, func(found string) string {
			return s.Labels[strings.Trim(found, "{} ")]
		})
		if _, is := s.Last(); is {
			all = append(all, s)
		}
	}
	return all, nil
}

func (a Asker) matrix(ctx context.Context, t dashboard.Target) (promql.Matrix, error) {
	expr := a.Expand(t.Expr)
	if t.Range {
		return a.Store.Range(ctx, expr, a.Span.From, a.Span.To, a.Span.Step)
	}
	vector, err := a.Store.Instant(ctx, expr, a.Span.To)
	if err != nil {
		return nil, err
	}
	var matrix promql.Matrix
	for _, sample := range vector {
		matrix = append(matrix, promql.Series{Metric: sample.Metric, Floats: []promql.FPoint{{T: sample.T, F: sample.F}}})
	}
	return matrix, nil
}

// Variable answers what can be chosen for a variable.
func (a Asker) Variable(ctx context.Context, v dashboard.Variable) ([]string, error) {
	selector, label, err := LabelOf(v)
	if err != nil {
		return nil, err
	}
	vector, err := a.Store.Instant(ctx, fmt.Sprintf("group by (%s) (%s)", label, a.Expand(selector)), a.Span.To)
	if err != nil {
		return nil, err
	}
	var values []string
	for _, sample := range vector {
		values = append(values, sample.Metric.Get(label))
	}
	slices.Sort(values)
	return values, nil
}
