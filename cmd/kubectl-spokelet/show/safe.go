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

// firstWide is the first character that a terminal may show in two cells. Some behind it take one; a line that is too
// short does no harm, and one that is too long is broken by the terminal, at a place that its writer chooses.
const firstWide = 0x1100

// cellsOf is how many cells a character takes at most. Punctuation, arrows, and the lines of tables take one.
func cellsOf(r rune) int {
	narrow := r < firstWide || r >= 0x2000 && r < 0x2300 || r >= 0x2500 && r < 0x25a0
	if narrow {
		return 1
	}
	return 2
}

// cells is how many cells of a terminal a safe text takes at most.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += cellsOf(r)
	}
	return n
}

// fitting returns the first part of a text that takes so many cells at most, and the rest.
func fitting(text string, width int) (first, rest string) {
	for i, r := range text {
		if width -= cellsOf(r); width < 0 && i > 0 {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// Fit shortens a safe text to a number of cells of a terminal.
func Fit(text string, width int) string {
	switch {
	case width <= 0:
		return ""
	case cells(text) <= width:
		return text
	case width <= len("..."):
		first, _ := fitting(text, width)
		return first
	}
	first, _ := fitting(text, width-len("..."))
	return first + "..."
}

// Wrap breaks a safe text into lines of at most so many cells, between words where that is possible.
func Wrap(text string, width int) []string {
	var lines []string
	line, taken := "", 0
	for word := range strings.FieldsSeq(text) {
		for cells(word) > width { // A word that no line takes is cut.
			if line != "" {
				lines, line = append(lines, line), ""
			}
			var first string
			first, word = fitting(word, width)
			if lines = append(lines, first); word == "" {
				break
			}
		}
		n := cells(word)
		switch {
		case word == "":
		case line == "":
			line, taken = word, n
		case taken+1+n <= width:
			line, taken = line+" "+word, taken+1+n
		default:
			lines, line, taken = append(lines, line), word, n
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
