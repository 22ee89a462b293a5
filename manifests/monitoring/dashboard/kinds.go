package dashboard

import "strconv"

// size returns the size of a panel.
func (p panel) size() GridPos {
	size := GridPos{W: 8, H: 8}
	if p.kind == stat {
		size = GridPos{W: 4, H: 4}
	}
	if p.width > 0 {
		size.W = p.width
	}
	if p.height > 0 {
		size.H = p.height
	}
	return size
}

// fields say how the values of a panel are shown.
func (p panel) fields() *FieldConfig {
	zero := 0.0
	f := Field{
		Unit: string(p.unit), Color: Color{Mode: "thresholds"}, Mappings: []Mapping{},
		Thresholds: Thresholds{Mode: "absolute", Steps: p.steps},
	}
	if p.steps == nil {
		f.Thresholds.Steps = plain(fine)
	}
	if p.max > 0 {
		f.Max = &p.max
	}
	if p.words != nil {
		f.Mappings = []Mapping{{Type: "value", Options: p.words}}
	}
	switch p.kind {
	case timeSeries:
		f.Min, f.Color, f.Custom = &zero, Color{Mode: "palette-classic"}, p.drawing()
	case barGauge:
		f.Min = &zero
	case table:
		f.Custom = map[string]any{"align": "auto", "cellOptions": map[string]any{"type": "auto"}}
	case stat:
		f.NoValue = "none"
	}
	return &FieldConfig{Defaults: f, Overrides: p.overrides()}
}

// drawing says how a time series is drawn.
func (p panel) drawing() map[string]any {
	custom := map[string]any{
		"drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 2, "fillOpacity": 8, "showPoints": "never",
		"spanNulls": false, "axisPlacement": "auto", "stacking": map[string]any{"mode": "none", "group": "A"},
		"thresholdsStyle": map[string]any{"mode": "off"},
	}
	switch p.drawn {
	case stacked:
		custom["fillOpacity"], custom["lineWidth"] = 60, 1
		custom["stacking"] = map[string]any{"mode": "normal", "group": "A"}
	case steps:
		custom["lineInterpolation"] = "stepAfter"
	case lines:
	}
	if p.steps != nil {
		custom["thresholdsStyle"] = map[string]any{"mode": "dashed"}
	}
	return custom
}

// options are those of the kind of a panel.
func (p panel) options() map[string]any {
	last := map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}
	switch p.kind {
	case stat:
		text, color, graph := "value", "value", "area"
		if p.steps != nil {
			color = "background_solid"
		}
		if p.named {
			text, graph = "name", "none"
		}
		return map[string]any{
			"reduceOptions": last, "colorMode": color, "graphMode": graph, "textMode": text, "justifyMode": "center",
			"orientation": "auto",
		}
	case barGauge:
		return map[string]any{
			"reduceOptions": last, "displayMode": "basic", "orientation": "horizontal", "showUnfilled": true,
			"valueMode": "text", "namePlacement": "top",
		}
	case timeSeries:
		return map[string]any{
			"legend": map[string]any{
				"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{},
			},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		}
	case table:
		return map[string]any{"showHeader": true, "cellHeight": "sm"}
	}
	return nil
}

// overrides give series their colours, and columns their titles.
func (p panel) overrides() []Override {
	overrides := []Override{}
	for _, name := range sorted(p.colors) {
		overrides = append(overrides, override(name, colored(p.colors[name])))
	}
	if p.kind != table {
		if p.codes != nil {
			overrides = append(overrides, nameCodes(p.codes)...)
		}
		return overrides
	}
	if p.codes != nil {
		overrides = append(overrides, override("code", Property{"mappings", []Mapping{wordCodes(p.codes)}}))
	}
	if p.opens != "" {
		overrides = append(overrides, override(p.by, Property{"links", []Link{{
			Title: "Open the dashboard",
			URL: "/d/" + p.opens + "?${__url_time_range}&${datasource:queryparam}&${job:queryparam}&${agents:queryparam}&var-" +
				p.by + "=${__value.raw}",
		}}}))
	}
	for i, c := range p.columns {
		cell := []Property{{"displayName", c.title}, {"unit", string(c.unit)}}
		if c.steps != nil {
			cell = append(cell, Property{"thresholds", Thresholds{Mode: "absolute", Steps: c.steps}},
				Property{"custom.cellOptions", map[string]any{"type": "color-background", "mode": "basic"}})
		}
		overrides = append(overrides, override(p.valueName(i), cell...))
	}
	return overrides
}

// valueName is the name that Grafana gives the values of a query of a table.
func (p panel) valueName(i int) string {
	if len(p.columns) == 1 {
		return "Value"
	}
	return "Value #" + letter(i)
}

// transformations join the columns of a table by the label that they have in common.
func (p panel) transformations() []Transformation {
	if p.kind != table {
		return nil
	}
	hide := map[string]bool{"Time": true}
	var join []Transformation
	if len(p.columns) > 1 {
		join = append(join, Transformation{ID: "joinByField", Options: map[string]any{"byField": p.by, "mode": "outer"}})
		for i := range p.columns {
			hide["Time "+strconv.Itoa(i+1)] = true
		}
	}
	return append(join, Transformation{ID: "organize", Options: map[string]any{"excludeByName": hide}})
}
