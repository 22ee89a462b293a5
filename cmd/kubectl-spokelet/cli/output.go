package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/show"
)

// schema is the version of the answers in JSON and YAML. A field that is there keeps its meaning in it.
const schema = "spokelet.io/cli/v1"

// outputName is the format with one name a line.
const outputName = "name"

// outputWide is the text with more columns.
const outputWide = "wide"

// answer wraps an answer in JSON and YAML.
type answer struct {
	Schema string `json:"schema"`
	Kind   string `json:"kind"`
	// Hub is the address of the hub, or the name of the bundle.
	Hub    string `json:"hub"`
	Answer any    `json:"answer"`
	Gaps   any    `json:"gaps,omitempty"`

	// names are what "-o name" writes, in any order and each any number of times; nil where that is written elsewhere.
	names []string
}

// asText reports whether a person is to read the answer.
func (p *Plugin) asText() bool { return p.output == "" || p.output == outputWide }

// validOutput refuses a format that is not known.
func (p *Plugin) validOutput() error {
	if !slices.Contains([]string{"", "json", "yaml", outputName, outputWide}, p.output) {
		return fmt.Errorf("%w: --output is json, yaml, name or wide, and not %q", errUse, p.output)
	}
	return nil
}

// names writes names, one in a line.
func (p *Plugin) names(all []string) error {
	for _, name := range all {
		if _, err := fmt.Fprintln(p.Streams.Out, show.Safe(name)); err != nil {
			return err
		}
	}
	return nil
}

// encoded writes an answer in JSON or YAML, or its names; false where text is asked for.
func (p *Plugin) encoded(a answer) (bool, error) {
	p.progress.clear()
	switch {
	case p.output == outputName && a.names != nil:
		return true, p.names(slices.Compact(slices.Sorted(slices.Values(a.names))))
	case p.asText(), p.output == outputName:
		return false, nil
	}
	raw, err := p.encode(a, "  ")
	if err != nil {
		return true, err
	}
	_, err = p.Streams.Out.Write(raw)
	return true, err
}

// encode returns an answer in JSON or YAML, as lines. A list without entries is a list. indent is that of JSON; empty
// for one line.
func (p *Plugin) encode(a answer, indent string) ([]byte, error) {
	a.Schema = schema
	if list := reflect.ValueOf(a.Answer); list.Kind() == reflect.Slice && list.IsNil() {
		a.Answer = []any{}
	}
	raw, err := json.Marshal(a)
	if err == nil && p.output == "yaml" {
		raw, err = show.SafeYAML(raw)
	} else if err == nil {
		raw, err = show.SafeJSON(raw, indent)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the answer: %w", err)
	}
	return raw, nil
}
