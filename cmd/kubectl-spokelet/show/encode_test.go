package show

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestWhatDoesNotShowInHTMLIsANumber(t *testing.T) {
	assert.Equal(t, `<p>Größe \u202e\u001b[2J`+"\n</p>", string(SafeHTML([]byte("<p>Größe \u202e\x1b[2J\n</p>"))))
}

// What is written for a program is the same text for it, and does no harm at a terminal.
func TestTextsInJSONAndYAML(t *testing.T) {
	for sentence, tc := range map[string]struct{ text, inJSON, inYAML string }{
		"plain words stay":              {"a b", `"a b"`, "t: a b\n"},
		"letters of other languages":    {"Größe 大きさ", `"Größe 大きさ"`, "t: Größe 大きさ\n"},
		"an escape of a terminal":       {"\x1b[2J", `"\u001b[2J"`, `t: "\e[2J"` + "\n"},
		"one of eight bits":             {"a\u009b8m", `"a\u009b8m"`, `t: "a\x9B8m"` + "\n"},
		"a mark of direction":           {"a\u202eb", `"a\u202eb"`, `t: "a\U0000202eb"` + "\n"},
		"one beside what YAML quotes":   {"\\u \"\u202e\x7f\n", `"\\u \"\u202e\u007f\n"`, `t: "\\u \"\U0000202e\x7F\n"` + "\n"},
		"one in a text of lines":        {"a\nb\u202e\n", `"a\nb\u202e\n"`, `t: "a\nb\U0000202e\n"` + "\n"},
		"one above those of two bytes":  {"a\U000e0001", `"a\udb40\udc01"`, `t: "a\U000E0001"` + "\n"},
		"a text that looks like escape": {`a\u202e`, `"a\\u202e"`, `t: a\u202e` + "\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			raw, err := json.Marshal(map[string]string{"t": tc.text})
			require.NoError(t, err)
			lines, err := SafeJSON(raw, "")
			require.NoError(t, err)
			assert.Equal(t, `{"t":`+tc.inJSON+"}\n", string(lines))
			var back map[string]string
			require.NoError(t, json.Unmarshal(lines, &back))
			assert.Equal(t, tc.text, back["t"])

			lines, err = SafeYAML(raw)
			require.NoError(t, err)
			assert.Equal(t, tc.inYAML, string(lines))
			back = nil
			require.NoError(t, yaml.Unmarshal(lines, &back))
			assert.Equal(t, tc.text, back["t"])
		})
	}
	lines, err := SafeJSON([]byte(`{"a":["b"]}`), "  ")
	require.NoError(t, err)
	assert.Equal(t, []string{"{", `  "a": [`, `    "b"`, "  ]", "}", ""}, strings.Split(string(lines), "\n"))
	lines, err = SafeYAML([]byte("{\"b\": {\"\u202e\": [1, true, null, \"1\", \"\u202e\"]}, \"a\": 1.5}"))
	require.NoError(t, err)
	assert.Equal(t, "a: 1.5\nb:\n  \"\\U0000202e\":\n    - 1\n    - true\n    - null\n    - \"1\"\n    - \"\\U0000202e\"\n", string(lines))
}
