package cli

import (
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

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

// encoded writes an answer in JSON or YAML; false where text is asked for.
func (p *Plugin) encoded(a answer) (bool, error) {
	p.progress.clear()
	a.Schema = schema
	var raw []byte
	var err error
	switch p.output {
	case "json":
		if raw, err = json.MarshalIndent(a, "", "  "); err == nil {
			raw = append(raw, '\n')
		}
	case "yaml":
		raw, err = yaml.Marshal(a)
	default:
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("encoding the answer: %w", err)
	}
	_, err = p.Streams.Out.Write(raw)
	return true, err
}
