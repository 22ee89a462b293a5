package template

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, missing := expand(test.text, values)
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.missing, missing)
		})
	}
}

// FuzzSubstitution: whatever stands in a manifest and whatever the values are, the structure of the manifest stays, no
// known variable is left, and what is not a variable is not changed.
func FuzzSubstitution(f *testing.F) {
	f.Add("{{A}}", "key", `","injected":"`)
	f.Add("{{", "{{A}}", "}}")
	f.Add("{{{A}}}", "a.b/c", "\\\"\n\x00")
	f.Add("{{B}}{{ A }}", "k", "{{A}}")
	f.Fuzz(func(t *testing.T, text, key, value string) {
		missing := 0
		s := &substitution{values: map[string]string{"A": value}, report: func(string, string) { missing++ }}
		in := map[string]any{"s": text, "o": map[string]any{key: []any{text, int64(1), nil, true}}}
		out := s.object(in)

		require.Len(t, out, 2)
		inner, ok := out["o"].(map[string]any)
		require.True(t, ok)
		require.Len(t, inner, 1)
		for _, item := range inner {
			list, ok := item.([]any)
			require.True(t, ok)
			require.Len(t, list, 4)
			assert.Equal(t, out["s"], list[0])
			assert.Equal(t, []any{int64(1), nil, true}, list[1:])
		}
		raw, err := json.Marshal(out)
		require.NoError(t, err)
		var back map[string]any
		require.NoError(t, json.Unmarshal(raw, &back))
		require.Len(t, back, 2)
		if !strings.ContainsAny(value, "{}") && missing == 0 {
			substituted, isText := out["s"].(string)
			require.True(t, isText)
			left, _ := expand(substituted, map[string]string{"A": "x"})
			assert.Equal(t, substituted, left, "no variable is left")
		}
		if !strings.Contains(text, "{{") || !strings.Contains(text, "}}") {
			assert.Equal(t, text, out["s"])
		}
		assert.Empty(t, s.steps)
	})
}

func TestMirrored(t *testing.T) {
	assert.Equal(t, "quay.io/a/b:v1", mirrored("quay.io/a/b:v1", nil))
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
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, matchesContainer(test.pattern, test.id)) })
	}
}
