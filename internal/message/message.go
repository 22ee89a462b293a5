package message

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxCause is how many bytes of an error of another client a message quotes.
const MaxCause = 500

// Cut shortens a text to a number of bytes, never within a character.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const more = "..."
	end := limit - len(more)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// List joins the first items with the separator and counts the others.
func List(items []string, limit int, separator string) string {
	if len(items) <= limit {
		return strings.Join(items, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(items[:limit], separator), separator, len(items)-limit)
}
