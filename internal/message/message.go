package message

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxCause is how many bytes of an error of another client a message quotes.
const MaxCause = 500

// maxQuoted is how many bytes of one value of another client a message quotes.
const maxQuoted = 100

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

// Quote writes a value that another client may have chosen: one line, printable, of bounded length.
func Quote(value string) string { return fmt.Sprintf("%q", Cut(value, maxQuoted)) }

// List joins the first items with the separator and counts the others.
func List(items []string, limit int, separator string) string {
	return ListOf(items[:min(len(items), limit)], len(items), separator)
}

// ListOf joins the first items of so many with the separator and counts the others.
func ListOf(first []string, all int, separator string) string {
	text := strings.Join(first, separator)
	if all <= len(first) {
		return text
	}
	return fmt.Sprintf("%s%sand %d more", text, separator, all-len(first))
}

// Items returns the first items, the last of which counts the others where there are more than the limit, which is at
// least 1. It counts also what an earlier call left out of the items.
func Items(items []string, limit int) []string {
	if len(items) <= limit {
		return items
	}
	left, last := 0, len(items)-1
	if n, err := fmt.Sscanf(items[last], "and %d more", &left); n == 1 && err == nil {
		items = items[:last]
	}
	return append(slices.Clone(items[:limit-1]), fmt.Sprintf("and %d more", left+len(items)-limit+1))
}

// OneLine writes a text of another client on one line, without a full stop at its end.
func OneLine(text string) string {
	return strings.TrimRight(strings.Join(strings.Fields(text), " "), ".")
}

// Sentence ends a text with a full stop, unless it is empty or has one.
func Sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// Object names an object: its kind, its namespace where it has one, and its name.
func Object(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return strings.TrimSpace(kind + " " + name)
}
