package template

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	openBraces  = "{{"
	closeBraces = "}}"
)

// substitution replaces the variables in one manifest and collects the problems.
type substitution struct {
	values map[string]string
	report func(path, message string)

	// steps is the path to the current place in the manifest.
	steps []string
	// missing reports that a variable has no value.
	missing bool
}

// object returns a deep copy of an object with its variables replaced.
func (s *substitution) object(from map[string]any) map[string]any {
	to := make(map[string]any, len(from))
	for _, key := range slices.Sorted(maps.Keys(from)) {
		s.steps = append(s.steps, keyStep(key))
		name := s.text(key)
		if _, taken := to[name]; taken {
			s.report(s.path(), fmt.Sprintf("its key becomes %q, which stands there already", name))
		}
		to[name] = s.value(from[key])
		s.steps = s.steps[:len(s.steps)-1]
	}
	return to
}

func (s *substitution) value(from any) any {
	switch typed := from.(type) {
	case string:
		return s.text(typed)
	case map[string]any:
		return s.object(typed)
	case []any:
		to := make([]any, len(typed))
		for i, item := range typed {
			s.steps = append(s.steps, "["+strconv.Itoa(i)+"]")
			to[i] = s.value(item)
			s.steps = s.steps[:len(s.steps)-1]
		}
		return to
	}
	return from
}

func (s *substitution) text(from string) string {
	to, missing := expand(from, s.values)
	for _, name := range missing {
		s.missing = true
		s.report(s.path(), missingMessage(name))
	}
	return to
}

func (s *substitution) path() string { return strings.Join(s.steps, "") }

// expand replaces each {{NAME}} by the value of NAME, and returns the names without a value; those stay. Values are not
// expanded. Unclosed braces are plain text.
func expand(text string, values map[string]string) (string, []string) {
	if !strings.Contains(text, openBraces) {
		return text, nil
	}
	var out strings.Builder
	var missing []string
	for {
		start := strings.Index(text, openBraces)
		if start < 0 {
			break
		}
		length := strings.Index(text[start+len(openBraces):], closeBraces)
		if length < 0 {
			break
		}
		end := start + len(openBraces) + length
		// Of several opening pairs, the last belongs to the closing pair; the others are plain text.
		start = strings.LastIndex(text[:end], openBraces)
		name := text[start+len(openBraces) : end]
		end += len(closeBraces)
		value, found := values[name]
		if !found {
			missing = append(missing, name)
			value = text[start:end]
		}
		out.WriteString(text[:start])
		out.WriteString(value)
		text = text[end:]
	}
	out.WriteString(text)
	return out.String(), missing
}

// missingMessage returns the message about a variable without a value, and what may be wrong with its name.
func missingMessage(name string) string {
	message := fmt.Sprintf("variable %s has no value", name)
	switch {
	case isVariableName(name):
		return message
	case isVariableName(strings.TrimSpace(name)):
		return fmt.Sprintf("variable %q has no value: write {{%s}}, without blanks", name, strings.TrimSpace(name))
	}
	return fmt.Sprintf("{{%s}} is no variable: a name has only letters, digits and _, and does not start with a digit",
		name)
}

// isVariableName reports whether the API allows a name for a customized variable.
func isVariableName(name string) bool {
	for i, r := range name {
		letter := r == '_' || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z')
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// keyStep returns a key as a step of a JSON path.
func keyStep(key string) string {
	if isVariableName(strings.ReplaceAll(key, "-", "_")) {
		return "." + key
	}
	return "[" + strconv.Quote(key) + "]"
}
