package dashboards

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
)

// units are those of Grafana that we have.
func units() []string { return []string{"short", "none", "s", "bytes", "percentunit", "ops", "reqps"} }

// seen are the colours that differ for people who confuse red and green, and in grey.
func seen() []string {
	return []string{"#0072B2", "#56B4E9", "#009E73", "#F0E442", "#E69F00", "#D55E00", "#CC79A7", "#8E8E8E"}
}

// panel judges a panel.
func (r *report) panel(p dashboard.Panel) {
	if p.Title == "" {
		r.add("title", p.Title, "panel %d has no title", p.ID)
	}
	if says, do, is := strings.Cut(p.Description, "\n\n"); !is || len(says) < 10 || len(do) < 10 {
		r.add("description", p.Title, "a description says what is shown, and in a paragraph of its own what to do")
	}
	if !isChosen(p.Datasource) {
		r.add("datasource-variable", p.Title, "its datasource is not ${datasource}")
	}
	for _, l := range p.Links {
		if !strings.HasPrefix(l.URL, "${docs}/") {
			r.add("links", p.Title, "link %s does not lead into the documentation of the fleet", l.URL)
		}
	}
	r.fields(p)
	if len(p.Targets) == 0 {
		r.add("targets", p.Title, "it has no query")
	}
	names := map[string]bool{}
	for _, t := range p.Targets {
		if names[t.RefID] {
			r.add("targets", p.Title, "two queries are called %s", t.RefID)
		}
		names[t.RefID] = true
		r.target(p, t)
	}
}

// color finds the colours in settings.
var color = regexp.MustCompile(`#[0-9A-Fa-f]{6}\b`)

// fields judges how values are shown.
func (r *report) fields(p dashboard.Panel) {
	if p.FieldConfig == nil || !slices.Contains(units(), p.FieldConfig.Defaults.Unit) {
		r.add("unit", p.Title, "it has no unit that is known")
		return
	}
	steps := p.FieldConfig.Defaults.Thresholds.Steps
	if len(steps) == 0 || steps[0].Value != nil {
		r.add("thresholds", p.Title, "the first step of its thresholds is for all values")
	}
	for i := 2; i < len(steps); i++ {
		if steps[i].Value == nil || *steps[i].Value <= *steps[i-1].Value {
			r.add("thresholds", p.Title, "its thresholds do not grow")
		}
	}
	for _, name := range color.FindAllString(text(p.FieldConfig), -1) {
		if !slices.Contains(seen(), name) {
			r.add("colors", p.Title, "colour %s is none of those that all people can tell apart", name)
		}
	}
	for _, name := range []string{`"red"`, `"green"`} {
		if strings.Contains(text(p.FieldConfig), name) {
			r.add("colors", p.Title, "some people cannot tell colour %s from others", name)
		}
	}
}
