package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	yamlv3 "gopkg.in/yaml.v3"
	"sigs.k8s.io/yaml"
)

// A person may read JSON and YAML at a terminal, too. Both have escapes for characters, so that no text of an object is
// changed by them for the program that reads it.

// hidden reports whether a character of JSON or YAML, of which the line break is a part, does not show as it is.
func hidden(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }

// SafeJSON returns lines of JSON: what does not show as it is has been escaped. indent is for one level; empty for all
// on one line.
func SafeJSON(raw []byte, indent string) ([]byte, error) {
	if indent != "" {
		var lines bytes.Buffer
		if err := json.Indent(&lines, raw, "", indent); err != nil {
			return nil, fmt.Errorf("indenting JSON: %w", err)
		}
		raw = lines.Bytes()
	}
	return append(escape(raw, func(r rune) string {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	}), '\n'), nil
}

// maxShort is the last character that an escape of four digits can write.
const maxShort = 0xffff

// SafeYAML returns JSON as YAML. A text with a character that does not show as it is stands in double quotes, in which
// YAML has escapes, too.
func SafeYAML(raw []byte) ([]byte, error) {
	lines, err := yaml.JSONToYAML(escape(raw, func(r rune) string {
		if r > maxShort { // YAML knows no pairs of escapes, and takes these as they are.
			return string(r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	}))
	if err != nil {
		return nil, fmt.Errorf("encoding YAML: %w", err)
	}
	if !strings.ContainsFunc(string(lines), hidden) {
		return lines, nil
	}
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(lines, &document); err != nil {
		return nil, fmt.Errorf("decoding YAML: %w", err)
	}
	quote(&document)
	var quoted bytes.Buffer
	encoder := yamlv3.NewEncoder(&quoted)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, fmt.Errorf("encoding YAML: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("encoding YAML: %w", err)
	}
	return escape(quoted.Bytes(), func(r rune) string { return fmt.Sprintf(`\U%08x`, r) }), nil
}

// quote puts texts with characters that do not show as they are into double quotes.
func quote(node *yamlv3.Node) {
	if node.Kind == yamlv3.ScalarNode && strings.ContainsFunc(node.Value, hidden) {
		node.Style = yamlv3.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		quote(child)
	}
}

// escape writes what does not show as it is by an escape.
func escape(text []byte, as func(rune) string) []byte {
	if !bytes.ContainsFunc(text, hidden) {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if hidden(r) {
			b.WriteString(as(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// SafeHTML returns HTML in which what does not show as it is stands as its number, as Safe writes it.
func SafeHTML(raw []byte) []byte {
	return escape(raw, func(r rune) string { return fmt.Sprintf(`\u%04x`, r) })
}
