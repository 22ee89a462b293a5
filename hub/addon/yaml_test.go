package addon_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub/addon"
)

func TestParseYAML(t *testing.T) {
	tests := map[string]struct {
		text string
		want []map[string]any
		says string
	}{
		"nothing is no object":        {"", nil, ""},
		"nor are comments":            {"# a\n---\n# b\n", nil, ""},
		"a file has several":          {"a: 1\n---\nb: 2\n", []map[string]any{{"a": int64(1)}, {"b": int64(2)}}, ""},
		"a separator has comments":    {"a: 1\n--- # next\nb: 2\n", []map[string]any{{"a": int64(1)}, {"b": int64(2)}}, ""},
		"dashes in a text are a text": {"a: |\n  ---\n  x\n", []map[string]any{{"a": "---\nx\n"}}, ""},
		"JSON is YAML":                {`{"a": 0.5}`, []map[string]any{{"a": 0.5}}, ""},
		"a text is no object":         {"a: 1\n---\ntext\n", nil, "the document that begins at line 3: it is no object"},
		"what is no YAML is an error": {"a: 1\n---\nb: [\n", nil, "the document that begins at line 3: it is no YAML"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			objects, err := addon.ParseYAML(tc.text)
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
				return
			}
			require.NoError(t, err)
			var got []map[string]any
			for _, object := range objects {
				got = append(got, object.Object)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}
