package command

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Gates is the value of a flag that turns feature gates on and off: name=true or name=false, separated by commas. The
// flag may be repeated.
type Gates struct {
	// Known are all gates by name.
	Known map[string]Gate
	// Notes collects the gates that were given and have no effect.
	Notes *Foreign

	// given are the gates that were set by their own name.
	given map[string]bool
}

// Gate is one feature gate.
type Gate struct {
	// Value is the setting that the gate turns; nil if there is none.
	Value *bool
	// On is the state of a gate without a setting, and Reason why it is always so; empty means that the state says it.
	On     bool
	Reason string
	// Stage is Alpha or Beta, by which AllAlpha and AllBeta select gates; empty where they select none.
	Stage string
}

// The stages of gates, by the names that select all gates of a stage.
const (
	// Alpha gates are off by default.
	Alpha = "AllAlpha"
	// Beta gates are on by default.
	Beta = "AllBeta"
)

// Names returns the names of all gates, and of those that stand for many.
func (g *Gates) Names() []string {
	return append(slices.Sorted(maps.Keys(g.Known)), Alpha, Beta)
}

// String implements pflag.Value.
func (g *Gates) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(g.Known)) {
		if value := g.Known[name].Value; value != nil {
			parts = append(parts, name+"="+strconv.FormatBool(*value))
		}
	}
	return strings.Join(parts, ",")
}

// Type implements pflag.Value.
func (*Gates) Type() string { return "gates" }

// Set implements pflag.Value. Gates that the text does not name keep their state, and so do all if the text is wrong.
// A name counts more than AllAlpha or AllBeta.
func (g *Gates) Set(text string) error {
	named, stages := map[string]bool{}, map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		if !found || err != nil {
			return fmt.Errorf("%q is not of the form name=true or name=false", part)
		}
		_, known := g.Known[name]
		switch {
		case known:
			named[name] = on
		case name == Alpha, name == Beta:
			stages[name] = on
		default:
			g.Notes.Unknown("--feature-gates="+name, fmt.Sprintf(
				"unknown feature gate %q, known are %s", name, strings.Join(g.Names(), ", ")))
		}
	}
	if g.given == nil {
		g.given = map[string]bool{}
	}
	maps.Copy(g.given, named)
	for _, stage := range slices.Sorted(maps.Keys(stages)) {
		g.setStage(stage, stages[stage])
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		g.setOne(name, named[name])
	}
	return nil
}

// setStage turns the gates of a stage that were not set by their own name.
func (g *Gates) setStage(stage string, on bool) {
	selects := false
	for name, gate := range g.Known {
		selects = selects || gate.Stage == stage
		if _, given := g.given[name]; gate.Stage == stage && gate.Value != nil && !given {
			*gate.Value = on
		}
	}
	if !selects {
		g.Notes.Note("--feature-gates="+stage, "name the gates one by one")
	}
}

func (g *Gates) setOne(name string, on bool) {
	gate := g.Known[name]
	switch {
	case gate.Value != nil:
		*gate.Value = on
	case gate.On != on && gate.Reason != "":
		g.Notes.Note("--feature-gates="+name, gate.Reason)
	case gate.On != on:
		g.Notes.Note("--feature-gates="+name, "here it is always "+map[bool]string{true: "on", false: "off"}[gate.On])
	}
}
