package text_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/spokelet/spokelet/internal/text"
)

func TestShorten(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"empty":                         {"", 0, ""},
		"shorter than the limit":        {"ab", 3, "ab"},
		"as long as the limit":          {"abc", 3, "abc"},
		"longer than the limit":         {"abcde", 4, "a..."},
		"never within a character":      {"äbcde", 4, "..."},
		"a character that just fits":    {"äbcde", 5, "ä..."},
		"a limit below the three dots":  {"abcde", 2, "..."},
		"the end of a long character":   {"a😀bcdef", 7, "a..."},
		"a long character as a whole":   {"a😀bcdef", 8, "a😀..."},
		"as many bytes, not characters": {"äöü", 6, "äöü"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, text.Shorten(c.text, c.limit)) })
	}
}
