package template

import (
	"fmt"
	"strings"
)

const (
	openBraces  = "{{"
	closeBraces = "}}"
	// quotedBraces is how a template writes two opening braces that start no variable: {{"{{"}}. The quotes cannot be
	// part of a name, so no variable is meant; Helm and Go templates write it the same way.
	quotedBraces = openBraces + `"`
)

// text is a string of a template, cut at its variables.
type text struct {
	parts []part
	// tail is the plain text after the last variable.
	tail string
}

// part is plain text and the variable after it.
type part struct {
	plain string
	// name is the name of the variable; source is all that stands between the braces.
	name, source string
	// as is the type that the template states for the value.
	as wanted
}

// parseText cuts a string at its variables. Two braces without the closing pair are plain text. Of several opening
// pairs before a closing one, the last belongs to it; the others are plain text.
func parseText(raw string) text {
	if !strings.Contains(raw, openBraces) {
		return text{tail: raw}
	}
	var t text
	var plain strings.Builder
	rest := raw
	for {
		first := strings.Index(rest, openBraces)
		if first < 0 {
			break
		}
		length := strings.Index(rest[first+len(openBraces):], closeBraces)
		if length < 0 {
			break
		}
		end := first + len(openBraces) + length
		start := strings.LastIndex(rest[:end], openBraces)
		source := rest[start+len(openBraces) : end]
		if before, quoted := strings.CutSuffix(rest[:start], quotedBraces); quoted && source == `"` {
			plain.WriteString(before)
			plain.WriteString(openBraces)
		} else {
			plain.WriteString(rest[:start])
			t.parts = append(t.parts, newPart(plain.String(), source))
			plain.Reset()
		}
		rest = rest[end+len(closeBraces):]
	}
	plain.WriteString(rest)
	t.tail = plain.String()
	return t
}

func newPart(plain, source string) part {
	p := part{plain: plain, name: source, source: source}
	if name, stated, found := strings.Cut(source, "|"); found {
		if as := statedType(stated); as.kind != wantsAnything {
			p.name, p.as = name, as
		}
	}
	return p
}

// isNamespace reports whether a variable stands for the namespace of ServiceAccounts in the name of a user or a group.
func (p *part) isNamespace() bool {
	return strings.HasSuffix(p.plain, "system:serviceaccount:") || strings.HasSuffix(p.plain, "system:serviceaccounts:")
}

// isWhole reports whether a text consists of one variable.
func (t *text) isWhole() bool { return len(t.parts) == 1 && t.parts[0].plain == "" && t.tail == "" }

// expand returns the text with the values of its variables, which are not expanded again. A variable without a value
// stays, and is reported with false.
func (t *text) expand(value func(part) (string, bool), report func(part)) (string, bool) {
	if len(t.parts) == 0 {
		return t.tail, true
	}
	if t.isWhole() {
		if got, found := value(t.parts[0]); found {
			return got, true
		}
	}
	complete := true
	var out strings.Builder
	for _, p := range t.parts {
		out.WriteString(p.plain)
		got, found := value(p)
		if !found {
			report(p)
			complete = false
			got = openBraces + p.source + closeBraces
		}
		out.WriteString(got)
	}
	out.WriteString(t.tail)
	return out.String(), complete
}

// missingMessage returns the message about a variable without a value, and what may be wrong with its name.
func missingMessage(name string) string {
	message := fmt.Sprintf("variable %s has no value", name)
	trimmed := strings.TrimSpace(name)
	switch {
	case isVariableName(name):
		return message
	case isVariableName(trimmed):
		return fmt.Sprintf("variable %q has no value: write {{%s}}, without blanks", name, trimmed)
	}
	if variable, stated, found := strings.Cut(name, "|"); found && isVariableName(strings.TrimSpace(variable)) {
		if trimmed := strings.TrimSpace(stated); statedType(trimmed).kind != wantsAnything {
			return fmt.Sprintf("variable %q has no value: write {{%s|%s}}, without blanks", name,
				strings.TrimSpace(variable), trimmed)
		}
		return fmt.Sprintf("{{%s}}: the type %q is unknown; it must be %s", name, stated, statedTypes)
	}
	return fmt.Sprintf("{{%s}} is no variable: a name has only letters, digits and _, and does not start with a digit; "+
		`two braces that start no variable are written {{"{{"}}`, name)
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
