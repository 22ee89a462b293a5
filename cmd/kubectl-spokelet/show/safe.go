package show

import (
	"fmt"
	"strings"
	"unicode"
)

// Safe writes a text of an object on one line, with what a terminal or an eye could take for something else written as
// its number: control characters, escapes, marks of direction, and what is not valid UTF-8.
func Safe(text string) string { return strings.Join(strings.Fields(spaced(text)), " ") }

// spaced is Safe with all spaces of the text.
func spaced(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n', r == '\t', r == '\r':
			b.WriteByte(' ')
		case r == unicode.ReplacementChar, !unicode.IsPrint(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Fit shortens a safe text to a number of characters.
func Fit(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	if width <= 3 {
		return string(runes[:max(width, 0)])
	}
	return string(runes[:width-3]) + "..."
}

// Wrap breaks a safe text into lines of at most so many characters, between words where that is possible.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		for len([]rune(word)) > width { // A word that no line takes is cut.
			if line != "" {
				lines, line = append(lines, line), ""
			}
			runes := []rune(word)
			lines, word = append(lines, string(runes[:width])), string(runes[width:])
		}
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
