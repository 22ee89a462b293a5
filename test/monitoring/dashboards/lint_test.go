package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
)

func shipped(t *testing.T) []dashboard.Document {
	t.Helper()
	all, err := Read(Root())
	require.NoError(t, err)
	require.Len(t, all, 4)
	return all
}

func TestTheDashboardsBreakNoRule(t *testing.T) {
	uids := map[string]bool{}
	for _, d := range shipped(t) {
		assert.False(t, uids[d.UID], "two dashboards are called %s", d.UID)
		uids[d.UID] = true
		for _, f := range without(Lint(d), exceptions()) {
			t.Errorf("%s: %s", d.Title, f)
		}
	}
}

func TestEachExceptionIsNeeded(t *testing.T) {
	for _, e := range exceptions() {
		used := 0
		for _, d := range shipped(t) {
			used += len(Lint(d)) - len(without(Lint(d), []exception{e}))
		}
		assert.NotZero(t, used, e)
		assert.NotEmpty(t, e.because, e)
	}
}

// anchor finds what headings become in addresses.
var anchor = regexp.MustCompile(`[^a-z0-9 -]`)

func TestLinksLeadToPagesThatExist(t *testing.T) {
	link := regexp.MustCompile(`\$\{docs\}/([a-zA-Z0-9/._-]+)(?:#([a-z0-9-]+))?`)
	open := regexp.MustCompile(`"/d/([a-z-]+)\?`)
	pages, uids, seen := map[string]map[string]bool{}, map[string]bool{}, 0
	for _, d := range shipped(t) {
		uids[d.UID] = true
	}
	for _, d := range shipped(t) {
		content, err := json.Marshal(d)
		require.NoError(t, err)
		for _, found := range link.FindAllStringSubmatch(string(content), -1) {
			seen++
			if pages[found[1]] == nil {
				pages[found[1]] = headings(t, filepath.Join(Root(), "docs", found[1]))
			}
			assert.True(t, found[2] == "" || pages[found[1]][found[2]], "%s: page %s has no heading %s", d.Title, found[1], found[2])
		}
		for _, found := range open.FindAllStringSubmatch(string(content), -1) {
			assert.True(t, uids[found[1]], "%s: no dashboard is called %s", d.Title, found[1])
		}
	}
	assert.Greater(t, seen, 50)
}

// headings returns the anchors of a page.
func headings(t *testing.T, file string) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	all := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		if title, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); is && strings.HasPrefix(line, "#") {
			title = anchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			all[strings.ReplaceAll(title, " ", "-")] = true
		}
	}
	return all
}

// sound is a small dashboard that breaks no rule.
func sound() dashboard.Document {
	source := func() *dashboard.Datasource { return &dashboard.Datasource{Type: "prometheus", UID: "${datasource}"} }
	variable := func(name, query string) dashboard.Variable {
		return dashboard.Variable{
			Name: name, Label: name, Description: name, Type: "query", Query: query, Datasource: source(), Refresh: 2,
			IncludeAll: true, Multi: true,
		}
	}
	panel := func(id, x int) dashboard.Panel {
		return dashboard.Panel{
			ID: id, Type: "timeseries", Title: "Requests", Description: "How many there are.\n\nDo something about it.",
			Datasource: source(), GridPos: dashboard.GridPos{H: 8, W: 12, X: x},
			Links: []dashboard.Link{{URL: "${docs}/a.md"}},
			FieldConfig: &dashboard.FieldConfig{Defaults: dashboard.Field{
				Unit: "reqps", Thresholds: dashboard.Thresholds{Steps: []dashboard.Step{{Color: "#0072B2"}}},
			}},
			Targets: []dashboard.Target{{
				RefID: "A", Datasource: source(), LegendFormat: "{{code}}", Format: "time_series", Range: true,
				Expr: `sum by (code) (rate(requests_total{job=~"$job",instance=~"$instance"}[$__rate_interval]))`,
			}},
		}
	}
	return dashboard.Document{
		UID: "spokelet-x", Title: "X", Description: "Y", Tags: []string{"spokelet"}, Timezone: "browser",
		Links: []dashboard.Link{{Type: "dashboards", Tags: []string{"spokelet"}, KeepTime: true, IncludeVars: true}},
		Templating: dashboard.Templating{List: []dashboard.Variable{
			{Name: "datasource", Label: "a", Description: "a", Type: "datasource", Query: "prometheus"},
			variable("job", "label_values(up, job)"), variable("instance", `label_values(up{job=~"$job"}, instance)`),
		}},
		Panels: []dashboard.Panel{panel(1, 0), panel(2, 12)},
	}
}

// Each change breaks one rule, so that a rule that stopped working would be seen.
func TestTheRulesReportWhatBreaksThem(t *testing.T) {
	assert.Empty(t, Lint(sound()))
	expr := func(text string) func(*dashboard.Document) {
		return func(d *dashboard.Document) { d.Panels[0].Targets[0].Expr = text }
	}
	one := 1.0
	for name, tc := range map[string]struct {
		change func(*dashboard.Document)
		rule   string
	}{
		"no uid":              {func(d *dashboard.Document) { d.UID = "" }, "uid"},
		"a long uid":          {func(d *dashboard.Document) { d.UID += strings.Repeat("x", 40) }, "uid"},
		"a timezone":          {func(d *dashboard.Document) { d.Timezone = "Europe/Rome" }, "timezone"},
		"editable":            {func(d *dashboard.Document) { d.Editable = true }, "editable"},
		"no title":            {func(d *dashboard.Document) { d.Title = "" }, "title"},
		"no tag":              {func(d *dashboard.Document) { d.Tags = nil }, "links"},
		"no link":             {func(d *dashboard.Document) { d.Links = nil }, "links"},
		"no datasource":       {func(d *dashboard.Document) { d.Templating.List[0].Query = "loki" }, "datasource-variable"},
		"a fixed datasource":  {func(d *dashboard.Document) { d.Panels[0].Datasource.UID = "prod" }, "datasource-variable"},
		"a fixed query":       {func(d *dashboard.Document) { d.Panels[0].Targets[0].Datasource.UID = "prod" }, "datasource-variable"},
		"a fixed variable":    {func(d *dashboard.Document) { d.Templating.List[1].Datasource.UID = "prod" }, "datasource-variable"},
		"no jobs":             {func(d *dashboard.Document) { d.Templating.List[1].Query = "label_values(up, pod)" }, "job-variable"},
		"a stale variable":    {func(d *dashboard.Document) { d.Templating.List[1].Refresh = 1 }, "variables"},
		"all of others":       {func(d *dashboard.Document) { d.Templating.List[1].AllValue = ".*" }, "variables"},
		"a label that lacks":  {func(d *dashboard.Document) { d.Templating.List[2].Name = "cluster" }, "variables"},
		"one value":           {func(d *dashboard.Document) { d.Templating.List[1].Multi = false }, "variables"},
		"no values":           {func(d *dashboard.Document) { d.Templating.List[1].Query = "label_values(up{, job)" }, "variables"},
		"no label":            {func(d *dashboard.Document) { d.Templating.List[1].Label = "" }, "variables"},
		"an unknown variable": {expr(`sum(rate(a_total{job=~"$job",instance=~"$instance",x=~"$x"}[$__rate_interval])) by (code)`), "variables"},
		"an overlap":          {func(d *dashboard.Document) { d.Panels[1].GridPos.X = 11 }, "grid"},
		"beyond the grid":     {func(d *dashboard.Document) { d.Panels[1].GridPos.X = 13 }, "grid"},
		"one id twice":        {func(d *dashboard.Document) { d.Panels[1].ID = 1 }, "grid"},
		"no panel title":      {func(d *dashboard.Document) { d.Panels[0].Title = "" }, "title"},
		"nothing to do":       {func(d *dashboard.Document) { d.Panels[0].Description = "How many there are." }, "description"},
		"a link elsewhere":    {func(d *dashboard.Document) { d.Panels[0].Links[0].URL = "https://x.example" }, "links"},
		"no unit":             {func(d *dashboard.Document) { d.Panels[0].FieldConfig.Defaults.Unit = "" }, "unit"},
		"no first colour": {func(d *dashboard.Document) {
			d.Panels[0].FieldConfig.Defaults.Thresholds.Steps[0].Value = &one
		}, "thresholds"},
		"steps that fall": {func(d *dashboard.Document) {
			steps := &d.Panels[0].FieldConfig.Defaults.Thresholds.Steps
			*steps = append(*steps, dashboard.Step{Color: "#E69F00", Value: &one}, dashboard.Step{Color: "#E69F00", Value: &one})
		}, "thresholds"},
		"red": {func(d *dashboard.Document) {
			d.Panels[0].FieldConfig.Defaults.Thresholds.Steps[0].Color = "red"
		}, "colors"},
		"a colour like others": {func(d *dashboard.Document) {
			d.Panels[0].FieldConfig.Defaults.Thresholds.Steps[0].Color = "#FF0000"
		}, "colors"},
		"no query":                  {func(d *dashboard.Document) { d.Panels[0].Targets = nil }, "targets"},
		"instant lines":             {func(d *dashboard.Document) { d.Panels[0].Targets[0].Instant = true }, "targets"},
		"no PromQL":                 {expr(`sum by (code) (rate(`), "promql"},
		"a raw counter":             {expr(`sum by (code) (a_total{job=~"$job",instance=~"$instance"})`), "counter"},
		"a rate of a gauge":         {expr(`sum by (code) (rate(a{job=~"$job",instance=~"$instance"}[$__rate_interval]))`), "counter"},
		"a range of its own":        {expr(`sum by (code) (rate(a_total{job=~"$job",instance=~"$instance"}[5m]))`), "rate-interval"},
		"another function":          {expr(`sum by (code) (delta(a_total{job=~"$job",instance=~"$instance"}[$__rate_interval]))`), "counter"},
		"all jobs":                  {expr(`sum by (code) (a{instance=~"$instance"})`), "job-matcher"},
		"all instances":             {expr(`sum by (code) (a{job=~"$job"})`), "instance-matcher"},
		"one job":                   {expr(`sum by (code) (a{job="$job",instance=~"$instance"})`), "matcher"},
		"no legend":                 {func(d *dashboard.Document) { d.Panels[0].Targets[0].LegendFormat = "" }, "legend"},
		"another label":             {func(d *dashboard.Document) { d.Panels[0].Targets[0].LegendFormat = "{{code}} {{pod}}" }, "legend"},
		"one legend for all":        {func(d *dashboard.Document) { d.Panels[0].Targets[0].LegendFormat = "all" }, "legend"},
		"labels that are not known": {expr(`a{job=~"$job",instance=~"$instance"}`), "legend"},
	} {
		t.Run(name, func(t *testing.T) {
			d := sound()
			tc.change(&d)
			rules := map[string]bool{}
			for _, f := range Lint(d) {
				rules[f.Rule] = true
			}
			assert.True(t, rules[tc.rule], "rule %s says nothing, only %v", tc.rule, fmt.Sprint(Lint(d)))
		})
	}
}
