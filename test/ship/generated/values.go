package generated

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	valuesPage   = "docs/operations/install.md"
	schemaFile   = "manifests/chart/values.schema.json"
	defaultsFile = "manifests/chart/values.yaml"
)

// schema is the part of a JSON schema that the table shows.
type schema struct {
	Description string            `json:"description"`
	Enum        []string          `json:"enum"`
	Properties  map[string]schema `json:"properties"`
}

// pageWithValues returns the page with the table of the values.
func pageWithValues(root string) ([]byte, error) {
	table, err := valuesTable(root)
	if err != nil {
		return nil, err
	}
	return pageWith(root, valuesPage, "values", table)
}

// pageWith returns a page with a table between the two comments that name it.
func pageWith(root, path, name, table string) ([]byte, error) {
	page, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return nil, fmt.Errorf("reading the page with the %s: %w", name, err)
	}
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	before, rest, found := bytes.Cut(page, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return nil, fmt.Errorf("%s has no lines %q and %q", path, strings.TrimSpace(begin), end)
	}
	return slices.Concat(before, []byte(begin), []byte(table), []byte(end), after), nil
}

// valuesTable returns the table of the values: one row for each that can be set.
func valuesTable(root string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(root, schemaFile))
	if err != nil {
		return "", fmt.Errorf("reading the schema: %w", err)
	}
	var all schema
	if err := json.Unmarshal(raw, &all); err != nil {
		return "", fmt.Errorf("decoding the schema: %w", err)
	}
	raw, err = os.ReadFile(filepath.Join(root, defaultsFile))
	if err != nil {
		return "", fmt.Errorf("reading the default values: %w", err)
	}
	var defaults map[string]any
	if err := yaml.Unmarshal(raw, &defaults); err != nil {
		return "", fmt.Errorf("decoding the default values: %w", err)
	}
	rows, err := rowsOf("", all, defaults)
	if err != nil {
		return "", err
	}
	slices.Sort(rows)
	return "\n| value | default | meaning |\n|---|---|---|\n" + strings.Join(rows, "") + "\n", nil
}

// rowsOf returns the rows of the properties below a prefix.
func rowsOf(prefix string, object schema, defaults map[string]any) ([]string, error) {
	var rows []string
	for name, property := range object.Properties {
		value, set := defaults[name]
		if name == "global" {
			continue
		}
		if !set {
			return nil, fmt.Errorf("value %s%s is in the schema, but has no default in %s", prefix, name, defaultsFile)
		}
		nested, isObject := value.(map[string]any)
		if isObject && len(nested) > 0 && len(property.Properties) > 0 {
			below, err := rowsOf(prefix+name+".", property, nested)
			if err != nil {
				return nil, err
			}
			rows = append(rows, below...)
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encoding the default of %s%s: %w", prefix, name, err)
		}
		rows = append(rows, fmt.Sprintf("| `%s%s` | `%s` | %s |\n", prefix, name, text, property.Description))
	}
	return rows, nil
}
