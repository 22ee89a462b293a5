package dashboards

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
	"github.com/spokelet/spokelet/test/monitoring/harness"
)

// inLegend finds the labels of a legend.
var inLegend = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// ofVariable finds the variables in an expression.
var ofVariable = regexp.MustCompile(`\$\{?(\w+)\}?`)

// rangeForLint stands for the range of a rate in expressions that are judged.
const rangeForLint = 123 * time.Second

// target judges a query.
func (r *report) target(p dashboard.Panel, t dashboard.Target) {
	where := p.Title + " " + t.RefID
	if !isChosen(t.Datasource) {
		r.add("datasource-variable", where, "its datasource is not ${datasource}")
	}
	for _, found := range ofVariable.FindAllStringSubmatch(t.Expr, -1) {
		if name := found[1]; name != "__rate_interval" && !r.has(name) {
			r.add("variables", where, "no variable is called %s", name)
		}
	}
	if p.Type == "table" != (t.Format == "table") || t.Instant == t.Range || (p.Type == "timeseries" && !t.Range) {
		r.add("targets", where, "format %s, instant %t and range %t are not those of a %s",
			t.Format, t.Instant, t.Range, p.Type)
	}
	expr := strings.ReplaceAll(t.Expr, "$__rate_interval", rangeForLint.String())
	tree, err := harness.Parser().ParseExpr(ofVariable.ReplaceAllString(expr, "VARIABLE_$1"))
	if err != nil {
		r.add("promql", where, "%v", err)
		return
	}
	r.tree(where, tree)
	r.legend(where, t, tree)
}

func (r *report) has(name string) bool {
	return slices.ContainsFunc(r.Templating.List, func(v dashboard.Variable) bool { return v.Name == name })
}

// tree judges the selectors of an expression.
func (r *report) tree(where string, tree parser.Node) {
	parser.Inspect(tree, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			r.selector(where, n)
			if isCounter(n.Name) && !insideRange(path) {
				r.add("counter", where, "counter %s is shown as it is: its rate or increase says more", n.Name)
			}
		case *parser.MatrixSelector:
			of, is := n.VectorSelector.(*parser.VectorSelector)
			if is && !isCounter(of.Name) {
				r.add("counter", where, "%s is no counter and has no rate", of.Name)
			}
			if n.Range != rangeForLint {
				r.add("rate-interval", where, "its range is not $__rate_interval, which fits the resolution of the picture")
			}
			if call, is := last[*parser.Call](path); !is || (call.Func.Name != "rate" && call.Func.Name != "increase") {
				r.add("counter", where, "the range of %s is neither in rate nor in increase", of.Name)
			}
		}
		return nil
	})
}

// last returns the last node of a path.
func last[N parser.Node](path []parser.Node) (N, bool) {
	if len(path) == 0 {
		return *new(N), false
	}
	of, is := path[len(path)-1].(N)
	return of, is
}

func insideRange(path []parser.Node) bool {
	_, is := last[*parser.MatrixSelector](path)
	return is
}

// isCounter reports whether the name of a metric is that of a counter, or of a part of a histogram or a summary.
func isCounter(name string) bool {
	for _, end := range []string{"_total", "_bucket", "_count", "_sum"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// selector judges which series are selected: those of the chosen jobs, and of the chosen instances where these are a
// choice. Several may be chosen, so a regular expression matches them.
func (r *report) selector(where string, s *parser.VectorSelector) {
	matched := map[string]bool{}
	for _, m := range s.LabelMatchers {
		if !strings.Contains(m.Value, "VARIABLE_") {
			continue
		}
		if m.Type != labels.MatchRegexp {
			r.add("matcher", where, "%s is not matched by =~, so several values do not work", m.Name)
		}
		matched[m.Name] = true
	}
	if !matched["job"] {
		r.add("job-matcher", where, "%s is not limited to the chosen jobs", s.Name)
	}
	for _, name := range []string{"instance", "cluster", "addon"} {
		if r.has(name) && !matched[name] && !ofOthers(name, s) {
			r.add(name+"-matcher", where, "%s is not limited to what is chosen as %s", s.Name, name)
		}
	}
}

// ofOthers reports whether a metric does not have the label of a variable: only metrics of the fleet have add-ons.
func ofOthers(name string, s *parser.VectorSelector) bool {
	return name == "addon" && !strings.HasPrefix(s.Name, "spokelet_fleet_")
}

// legend judges whether the legend tells the series of a query apart.
func (r *report) legend(where string, t dashboard.Target, tree parser.Node) {
	if t.LegendFormat == "" {
		r.add("legend", where, "its series have no legend")
		return
	}
	has, known := resultLabels(tree)
	if !known {
		r.add("legend", where, "its labels are not known: end it with an aggregation")
		return
	}
	var told []string
	for _, found := range inLegend.FindAllStringSubmatch(t.LegendFormat, -1) {
		told = append(told, found[1])
		if !slices.Contains(has, found[1]) {
			r.add("legend", where, "label %s of its legend is not that of its series: %v", found[1], has)
		}
	}
	for _, name := range has {
		if t.Format != "table" && !slices.Contains(told, name) {
			r.add("legend", where, "its legend does not have label %s, so two series look the same", name)
		}
	}
}

// labelsOf returns the labels of the result of an expression.
func resultLabels(node parser.Node) ([]string, bool) {
	switch n := node.(type) {
	case *parser.ParenExpr:
		return resultLabels(n.Expr)
	case *parser.NumberLiteral:
		return nil, true
	case *parser.AggregateExpr:
		return n.Grouping, !n.Without && n.Op != parser.TOPK && n.Op != parser.BOTTOMK
	case *parser.Call:
		return labelsOfCall(n)
	case *parser.BinaryExpr:
		left, known := resultLabels(n.LHS)
		right, alsoKnown := resultLabels(n.RHS)
		if len(left) == 0 {
			left = right
		}
		return left, known && alsoKnown
	}
	return nil, false
}

func labelsOfCall(call *parser.Call) ([]string, bool) {
	switch call.Func.Name {
	case "time", "vector":
		return nil, true
	case "sort", "sort_desc":
		return resultLabels(call.Args[0])
	case "histogram_quantile":
		has, known := resultLabels(call.Args[1])
		return slices.DeleteFunc(slices.Clone(has), func(name string) bool { return name == "le" }), known
	}
	return nil, false
}

// LabelOf returns the selector and the label of a variable with the values of a label.
func LabelOf(v dashboard.Variable) (selector, label string, err error) {
	inner, is := strings.CutPrefix(v.Query, "label_values(")
	at := strings.LastIndex(inner, ", ")
	if !is || at < 0 || !strings.HasSuffix(inner, ")") {
		return "", "", fmt.Errorf("query %q is not label_values(selector, label)", v.Query)
	}
	selector, label = inner[:at], inner[at+2:len(inner)-1]
	if _, err := harness.Parser().ParseMetricSelector(ofVariable.ReplaceAllString(selector, "VARIABLE_$1")); err != nil {
		return "", "", fmt.Errorf("selector of query %q: %w", v.Query, err)
	}
	return selector, label, nil
}

// text is a value as JSON.
func text(of any) string {
	content, err := json.Marshal(of)
	if err != nil {
		return err.Error()
	}
	return string(content)
}
