package template

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/spokelet/spokelet/hub/addon"
)

// expand replaces the variables in a text, and returns those without a value.
func expand(raw string, values map[string]string) (string, []string) {
	var missing []string
	parsed := parseText(raw)
	got, _ := parsed.expand(func(p part) (string, bool) {
		value, found := values[p.name]
		return value, found
	}, func(p part) { missing = append(missing, p.source) })
	return got, missing
}

// Shows: hub/expansion
func TestExpand(t *testing.T) {
	values := map[string]string{"A": "1", "B": "{{A}}", "E": "", "Q": "\"}\n\\"}
	tests := map[string]struct {
		text    string
		want    string
		missing []string
	}{
		"nothing":                              {"plain", "plain", nil},
		"a value":                              {"x{{A}}y", "x1y", nil},
		"several":                              {"{{A}}{{A}}-{{E}}", "11-", nil},
		"a value is not looked at again":       {"{{B}}", "{{A}}", nil},
		"no value can leave its string":        {"{{Q}}", "\"}\n\\", nil},
		"braces that are never closed":         {"{{A", "{{A", nil},
		"closing braces alone":                 {"A}}", "A}}", nil},
		"an open pair before a variable":       {"{{ {{A}}", "{{ 1", nil},
		"three braces":                         {"{{{A}}}", "{1}", nil},
		"an unknown name stays and is told":    {"{{A}}{{X}}", "1{{X}}", []string{"X"}},
		"no name at all":                       {"{{}}", "{{}}", []string{""}},
		"names are taken as they are":          {"{{ A }}", "{{ A }}", []string{" A "}},
		"the same unknown name twice":          {"{{X}}{{X}}", "{{X}}{{X}}", []string{"X", "X"}},
		"a closed one before one that is open": {"{{A}}{{A", "1{{A", nil},
		"two braces of the author":             {`{{"{{"}} $labels.A }}`, "{{ $labels.A }}", nil},
		"braces of the author before a name":   {`{{"{{"}}A}}-{{A}}`, "{{A}}-1", nil},
		"several braces of the author":         {`{{"{{"}}{{"{{"}}{{A}}`, "{{{{1", nil},
		"braces of the author after open ones": {`{{ x {{"{{"}} y`, "{{ x {{ y", nil},
		"quotes around a variable":             {`{{"{{A}}"}}`, `{{"1"}}`, nil},
		"a quote alone":                        {`{{"}}`, `{{"}}`, []string{`"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, missing := expand(test.text, values)
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.missing, missing)
		})
	}
}

func TestMatchesContainer(t *testing.T) {
	tests := map[string]struct {
		pattern, id string
		want        bool
	}{
		"the very one":            {"deployments:a:c", "deployments:a:c", true},
		"another one":             {"deployments:a:c", "deployments:a:cc", false},
		"all":                     {"*:*:*", "daemonsets:x:y", true},
		"part of a name":          {"deployments:agent-*:c", "deployments:agent-1:c", true},
		"a star is not nothing":   {"deployments:agent*:c", "deployments:agent:c", false},
		"other signs are literal": {"deployments:a.b:c", "deployments:axb:c", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, addon.MatchesID(test.pattern, test.id)) })
	}
}
