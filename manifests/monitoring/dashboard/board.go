package dashboard

import "github.com/spokelet/spokelet/internal/causes"

// board is a dashboard.
type board struct {
	// uid is its name in addresses, and without "spokelet-" that of its file.
	uid, title, description string
	// selects are the labels that stand for "@" in the queries.
	selects   string
	variables []Variable
	rows      []row
}

// row is a title with panels below it.
type row struct {
	title  string
	panels []panel
}

// kind is a kind of panel, by the name that Grafana has for it.
type kind string

const (
	stat       kind = "stat"
	timeSeries kind = "timeseries"
	barGauge   kind = "bargauge"
	table      kind = "table"
)

// unit is how Grafana writes a value.
type unit string

const (
	count      unit = "short"
	seconds    unit = "s"
	memory     unit = "bytes"
	share      unit = "percentunit"
	perSecond  unit = "ops"
	requests   unit = "reqps"
	processors unit = "none"
)

// panel is a panel.
type panel struct {
	kind
	unit

	title string
	// says is what the panel shows, and do is what to do about it.
	says, do string
	// runbook is the alert whose page says more; empty for none.
	runbook string
	// width and height are those in the grid; zero is that of the kind.
	width, height int
	queries       []query
	// steps are colours by value; nil has the plain colour, or one for each series.
	steps []Step
	// words are texts for values.
	words map[string]MappedText
	// colors are colours for series by their legends; nil leaves them to Grafana.
	colors map[string]string
	// codes are those of kubectl spokelet that series, or cells of the column "code", may be.
	codes []causes.Code
	// columns are those of a table after the first, which has the label that its queries have in common.
	by      string
	columns []column
	// opens is the dashboard that cells of the first column open, for what stands in them.
	opens string
	// drawn says how lines are drawn.
	drawn style
	// named shows the legends of a stat instead of its values.
	named bool
	// max is the greatest value of a scale; zero leaves it to the values.
	max float64
}

// style is how a time series is drawn.
type style int

const (
	lines style = iota
	stacked
	steps
)

// query is a query with the legend of its series.
type query struct {
	expr, legend string
}

// column is a query that is a column of a table.
type column struct {
	title, expr string
	unit
	steps []Step
}
