package dashboard

import "strings"

const (
	// docs is the variable with the address of the documentation, so that a fleet without a way to it names its own copy.
	docs = "${docs}"
	// DocsURL is its value.
	DocsURL = "https://github.com/spokelet/spokelet/blob/main/docs"
	// Tag is what all dashboards have, by which they link to each other.
	Tag = "spokelet"
	// Names of the dashboards in addresses. Links and bookmarks have them, so they stay.
	fleetUID, addOnUID, clusterUID, hubManagerUID = Tag + "-fleet", Tag + "-addon", Tag + "-cluster", Tag + "-hub-manager"
	// wide is how many columns the grid has.
	wide = 24
	// schemaVersion is that of the format; Grafana brings older ones up to date when it reads them.
	schemaVersion = 39
)

// All returns the dashboards.
func All() []Document {
	var all []Document
	for _, b := range boards() {
		all = append(all, b.document())
	}
	return all
}

func boards() []board { return []board{fleetBoard(), addOnBoard(), clusterBoard(), hubManagerBoard()} }

// document returns a board as Grafana reads it.
func (b board) document() Document {
	d := Document{
		UID: b.uid, Title: b.title, Description: b.description, Tags: []string{Tag}, GraphTooltip: 1,
		Links: []Link{{
			Title: "Spokelet", Type: "dashboards", Tags: []string{Tag}, IncludeVars: true, KeepTime: true,
		}},
		Refresh: "1m", SchemaVersion: schemaVersion, Time: Span{From: "now-1h", To: "now"}, Timezone: "browser", Version: 1,
		Templating: Templating{List: append([]Variable{chooseDatasource()}, append(b.variables, nameDocs())...)},
	}
	at := GridPos{}
	for _, r := range b.rows {
		d.Panels = append(d.Panels, Panel{
			ID: len(d.Panels) + 1, Type: "row", Title: r.title, GridPos: GridPos{H: 1, W: wide, Y: at.Y},
		})
		at = GridPos{Y: at.Y + 1}
		for _, p := range r.panels {
			at = at.next(p.size())
			d.Panels = append(d.Panels, b.panel(p, len(d.Panels)+1, at))
		}
		at.Y += at.H
	}
	return d
}

// next returns the place of a panel beside the last one, or below when there is no room beside it.
func (g GridPos) next(size GridPos) GridPos {
	size.X, size.Y = g.X+g.W, g.Y
	if size.X+size.W > wide {
		size.X, size.Y = 0, g.Y+g.H
	}
	return size
}

// panel returns a panel of a board.
func (b board) panel(p panel, id int, at GridPos) Panel {
	built := Panel{
		ID: id, Type: string(p.kind), Title: p.title, Description: p.says + "\n\n" + p.do, Datasource: source(),
		GridPos: at, FieldConfig: p.fields(), Options: p.options(), Transformations: p.transformations(),
	}
	if p.runbook != "" {
		built.Links = []Link{{
			Title: "Runbook " + p.runbook, URL: docs + "/operations/runbooks/" + p.runbook + ".md", TargetBlank: true,
		}}
	}
	for _, c := range p.columns {
		p.queries = append(p.queries, query{expr: c.expr, legend: c.title})
	}
	for i, q := range p.queries {
		t := Target{
			RefID: letter(i), Datasource: source(), LegendFormat: q.legend, Format: "time_series",
			Expr: strings.ReplaceAll(q.expr, "@", b.selects), Range: true,
		}
		if p.kind == barGauge || p.kind == table {
			t.Instant, t.Range = true, false
		}
		if p.kind == table {
			t.Format = "table"
		}
		built.Targets = append(built.Targets, t)
	}
	return built
}

// letter is the name of a query.
func letter(i int) string { return "ABCDEFGH"[i : i+1] }

func source() *Datasource { return &Datasource{Type: "prometheus", UID: "${datasource}"} }

// chooseDatasource is the variable with the Prometheus.
func chooseDatasource() Variable {
	return Variable{
		Name: "datasource", Label: "Prometheus", Description: "The Prometheus that scrapes Spokelet.",
		Type: "datasource", Query: "prometheus", Refresh: 1,
	}
}

func nameDocs() Variable {
	return Variable{
		Name: "docs", Label: "Documentation", Description: "Where links to the documentation lead.", Type: "constant",
		Query: DocsURL, Hide: 2, SkipURLSync: true, Current: &Choice{Text: DocsURL, Value: DocsURL},
	}
}

// labelOf is a label of series.
type labelOf struct{ series, label string }

// choose returns a variable with the values that a label of series has, of which several may be chosen.
func choose(name, label, description string, values labelOf) Variable {
	query := "label_values(" + values.series + ", " + values.label + ")"
	return Variable{
		Name: name, Label: label, Description: description, Type: "query", Query: query, Definition: query,
		Datasource: source(), Current: &Choice{Text: "All", Value: "$__all"}, IncludeAll: true, Multi: true,
		Refresh: 2, Sort: 1,
	}
}
