package addon

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// ParseYAML returns the objects of a text in YAML or JSON, which may have several, separated by "---". A document
// without content is not an object. The error names the line at which the document begins.
func ParseYAML(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	var current strings.Builder
	begin, line := 1, 0
	take := func() error {
		object, err := parseDocument(current.String())
		if err != nil {
			return fmt.Errorf("the document that begins at line %d: %w", begin, err)
		}
		if len(object) > 0 {
			objects = append(objects, &unstructured.Unstructured{Object: object})
		}
		current.Reset()
		begin = line + 1
		return nil
	}
	for part := range strings.Lines(text) {
		line++
		if !isSeparator(part) {
			current.WriteString(part)
			continue
		}
		if err := take(); err != nil {
			return nil, err
		}
	}
	return objects, take()
}

// isSeparator reports whether a line separates documents.
func isSeparator(line string) bool {
	rest, found := strings.CutPrefix(line, "---")
	rest = strings.TrimSpace(rest)
	return found && (rest == "" || strings.HasPrefix(rest, "#"))
}

// parseDocument returns one object; nil for no content.
func parseDocument(text string) (map[string]any, error) {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("it is no YAML: %w", err)
	}
	var object any
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	switch typed := object.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return typed, nil
	}
	return nil, fmt.Errorf("it is no object but %.40q", strings.TrimSpace(text))
}
