package dashboard

// Document is a dashboard as Grafana reads it, with the fields that ours have.
type Document struct {
	UID           string     `json:"uid"`
	Title         string     `json:"title"`
	Description   string     `json:"description"`
	Tags          []string   `json:"tags"`
	Editable      bool       `json:"editable"`
	GraphTooltip  int        `json:"graphTooltip"`
	Links         []Link     `json:"links"`
	Panels        []Panel    `json:"panels"`
	Refresh       string     `json:"refresh"`
	SchemaVersion int        `json:"schemaVersion"`
	Templating    Templating `json:"templating"`
	Time          Span       `json:"time"`
	Timezone      string     `json:"timezone"`
	Version       int        `json:"version"`
}

// Span is the time that a dashboard shows at first.
type Span struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Link leads to other dashboards, when Tags selects them, or to a page.
type Link struct {
	Title       string   `json:"title"`
	Type        string   `json:"type,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	URL         string   `json:"url,omitempty"`
	TargetBlank bool     `json:"targetBlank,omitempty"`
	IncludeVars bool     `json:"includeVars,omitempty"`
	KeepTime    bool     `json:"keepTime,omitempty"`
}

// Templating has the variables of a dashboard.
type Templating struct {
	List []Variable `json:"list"`
}

// Variable is a choice above a dashboard, or a constant.
type Variable struct {
	Name        string      `json:"name"`
	Label       string      `json:"label"`
	Description string      `json:"description"`
	Type        string      `json:"type"`
	Query       string      `json:"query"`
	Definition  string      `json:"definition,omitempty"`
	Datasource  *Datasource `json:"datasource,omitempty"`
	Current     *Choice     `json:"current,omitempty"`
	Hide        int         `json:"hide"`
	IncludeAll  bool        `json:"includeAll"`
	AllValue    string      `json:"allValue,omitempty"`
	Multi       bool        `json:"multi"`
	Refresh     int         `json:"refresh,omitempty"`
	Sort        int         `json:"sort,omitempty"`
	SkipURLSync bool        `json:"skipUrlSync,omitempty"`
}

// Choice is the value of a variable.
type Choice struct {
	Text  string `json:"text"`
	Value string `json:"value"`
}

// Datasource names where data comes from.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Panel is a panel, or the title of a row.
type Panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description,omitempty"`
	Datasource      *Datasource      `json:"datasource,omitempty"`
	GridPos         GridPos          `json:"gridPos"`
	Links           []Link           `json:"links,omitempty"`
	Targets         []Target         `json:"targets,omitempty"`
	FieldConfig     *FieldConfig     `json:"fieldConfig,omitempty"`
	Options         map[string]any   `json:"options,omitempty"`
	Transformations []Transformation `json:"transformations,omitempty"`
}

// GridPos is the place of a panel in a grid of 24 columns.
type GridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// Target is a query.
type Target struct {
	RefID        string      `json:"refId"`
	Datasource   *Datasource `json:"datasource"`
	Expr         string      `json:"expr"`
	LegendFormat string      `json:"legendFormat"`
	Format       string      `json:"format"`
	Instant      bool        `json:"instant"`
	Range        bool        `json:"range"`
}

// FieldConfig says how values are shown.
type FieldConfig struct {
	Defaults  Field      `json:"defaults"`
	Overrides []Override `json:"overrides"`
}

// Field says how a value is shown.
type Field struct {
	Unit       string         `json:"unit"`
	Min        *float64       `json:"min,omitempty"`
	Max        *float64       `json:"max,omitempty"`
	Decimals   *int           `json:"decimals,omitempty"`
	NoValue    string         `json:"noValue,omitempty"`
	Color      Color          `json:"color"`
	Thresholds Thresholds     `json:"thresholds"`
	Mappings   []Mapping      `json:"mappings"`
	Custom     map[string]any `json:"custom,omitempty"`
}

// Color is how a colour is chosen.
type Color struct {
	Mode       string `json:"mode"`
	FixedColor string `json:"fixedColor,omitempty"`
}

// Thresholds give values their colours.
type Thresholds struct {
	Mode  string `json:"mode"`
	Steps []Step `json:"steps"`
}

// Step is the colour from a value on; nil is the first one.
type Step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// Mapping gives values their texts.
type Mapping struct {
	Type    string                `json:"type"`
	Options map[string]MappedText `json:"options"`
}

// MappedText is the text of a value.
type MappedText struct {
	Text  string `json:"text"`
	Color string `json:"color,omitempty"`
	Index int    `json:"index"`
}

// Override says how some values are shown.
type Override struct {
	Matcher    Matcher    `json:"matcher"`
	Properties []Property `json:"properties"`
}

// Matcher selects fields.
type Matcher struct {
	ID      string `json:"id"`
	Options string `json:"options"`
}

// Property is one setting of an override.
type Property struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

// Transformation changes the answers of queries before they are shown.
type Transformation struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}
