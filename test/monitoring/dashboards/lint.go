package dashboards

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
)

// Finding is a rule that a dashboard breaks.
type Finding struct {
	// Rule is the name of the rule.
	Rule string
	// Where is the panel, the variable, or empty for the dashboard.
	Where string
	// Says is what is wrong.
	Says string
}

// String returns the finding as a line.
func (f Finding) String() string { return f.Rule + ": " + f.Where + ": " + f.Says }

// report collects findings.
type report struct {
	dashboard.Document

	found []Finding
}

func (r *report) add(rule, where, format string, args ...any) {
	r.found = append(r.found, Finding{Rule: rule, Where: where, Says: fmt.Sprintf(format, args...)})
}

// Lint returns which rules a dashboard breaks, without exceptions.
func Lint(d dashboard.Document) []Finding {
	r := &report{Document: d}
	r.document()
	r.variables()
	r.grid()
	for _, p := range d.Panels {
		if p.Type != row {
			r.panel(p)
		}
	}
	return r.found
}

// row is the type of the titles between panels.
const row = "row"

// document judges what stands once.
func (r *report) document() {
	switch {
	case !strings.HasPrefix(r.UID, dashboard.Tag+"-"):
		r.add("uid", "", "uid %q does not begin with %s-: links and bookmarks need one that stays", r.UID, dashboard.Tag)
	case len(r.UID) > 40:
		r.add("uid", "", "uid %q has more than 40 characters", r.UID)
	}
	if !slices.Contains([]string{"browser", "utc", "default"}, r.Timezone) {
		r.add("timezone", "", "timezone %q is none that each person has", r.Timezone)
	}
	if r.Editable {
		r.add("editable", "", "what a person changes in Grafana is lost with the next upgrade: it must not be editable")
	}
	if r.Title == "" || r.Description == "" {
		r.add("title", "", "a dashboard has a title and a description")
	}
	if !slices.Contains(r.Tags, dashboard.Tag) {
		r.add("links", "", "it lacks tag %s, by which the dashboards link to each other", dashboard.Tag)
	}
	if !slices.ContainsFunc(r.Links, func(l dashboard.Link) bool {
		return l.Type == "dashboards" && slices.Contains(l.Tags, dashboard.Tag) && l.KeepTime && l.IncludeVars
	}) {
		r.add("links", "", "it does not link to the other dashboards with time and variables")
	}
}

// variables judges the variables.
func (r *report) variables() {
	first := ""
	for _, v := range r.Templating.List {
		switch v.Type {
		case "datasource":
			if first == "" && v.Query == "prometheus" {
				first = v.Name
			}
		case "query":
			r.queryVariable(v)
		case "constant":
		default:
			r.add("variables", v.Name, "type %q is not judged by any rule: write one", v.Type)
		}
		if v.Label == "" || v.Description == "" {
			r.add("variables", v.Name, "it has no label or no description")
		}
	}
	if first != "datasource" {
		r.add("datasource-variable", "", "no variable datasource lets people choose their Prometheus")
	}
	if !slices.ContainsFunc(r.Templating.List, isJob) {
		r.add("job-variable", "", "no variable has the jobs of the programs")
	}
	text := r.allExpressions()
	for _, v := range r.Templating.List {
		if v.Type == "query" && !strings.Contains(text, "$"+v.Name) {
			r.add("variables", v.Name, "no query has it")
		}
	}
}

// optional is the variable of a label that not each Prometheus gives.
const optional = "cluster"

func isJob(v dashboard.Variable) bool {
	return v.Type == "query" && strings.HasSuffix(v.Query, ", job)")
}

// queryVariable judges a variable with the values of a label.
func (r *report) queryVariable(v dashboard.Variable) {
	if !isChosen(v.Datasource) {
		r.add("datasource-variable", v.Name, "its datasource is not ${datasource}")
	}
	if v.Refresh != 2 {
		r.add("variables", v.Name, "it is not read again when the time changes: an object that is gone cannot be chosen")
	}
	if !v.IncludeAll || !v.Multi {
		r.add("variables", v.Name, "all and several values can be chosen")
	}
	switch {
	case v.Name == optional && v.AllValue != ".*":
		r.add("variables", v.Name, "all does not match series without the label, and not each Prometheus gives it")
	case v.Name != optional && v.AllValue != "":
		r.add("variables", v.Name, "all is more than the values that can be chosen")
	}
	if _, _, err := LabelOf(v); err != nil {
		r.add("variables", v.Name, "%v", err)
	}
}

// allExpressions returns all texts that may have variables.
func (r *report) allExpressions() string {
	var all strings.Builder
	for _, v := range r.Templating.List {
		all.WriteString(v.Query + "\n")
	}
	for _, p := range r.Panels {
		for _, t := range p.Targets {
			all.WriteString(t.Expr + "\n")
		}
	}
	return all.String()
}

// grid judges ids and places.
func (r *report) grid() {
	ids := map[int]string{}
	taken := map[[2]int]string{}
	for _, p := range r.Panels {
		if other, twice := ids[p.ID]; twice {
			r.add("grid", p.Title, "panel %q has the same id %d", other, p.ID)
		}
		ids[p.ID] = p.Title
		g := p.GridPos
		if g.X < 0 || g.Y < 0 || g.W < 1 || g.H < 1 || g.X+g.W > 24 {
			r.add("grid", p.Title, "its place %+v is not within 24 columns", g)
			continue
		}
		overlaps := map[string]bool{}
		for y := g.Y; y < g.Y+g.H; y++ {
			for x := g.X; x < g.X+g.W; x++ {
				if other, is := taken[[2]int{x, y}]; is {
					overlaps[other] = true
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, other := range slices.Sorted(maps.Keys(overlaps)) {
			r.add("grid", p.Title, "it overlaps panel %q", other)
		}
	}
}

// isChosen reports whether a datasource is the one that was chosen.
func isChosen(of *dashboard.Datasource) bool {
	return of != nil && of.Type == "prometheus" && of.UID == "${datasource}"
}
