package work

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what is told about objects that do not go.
const (
	// maxHolds is how many objects are named, maxNext how many of those whose turn comes after them.
	maxHolds, maxNext = 10, 5
	// maxFinalizers is how many finalizers of one object are named, maxBecause how much is told of another cause, in
	// bytes.
	maxFinalizers, maxBecause = 5, 500
)

// describeHolds names the objects that do not go, the first of them when there are many.
func describeHolds(held []hold) string {
	lines := make([]string, len(held))
	for i := range held {
		lines[i] = held[i].String()
	}
	noun := "objects"
	if len(held) == 1 {
		noun = "object"
	}
	return fmt.Sprintf("%d %s: %s", len(held), noun, enumerate(lines, maxHolds, ", "))
}

// String describes the object, with all that is known of why it is still there and since when. It gives the instant,
// not the age, so that the text does not change by itself.
func (h hold) String() string {
	var known []string
	switch len(h.finalizers) {
	case 0:
	case 1:
		known = append(known, "finalizer "+h.finalizers[0])
	default:
		known = append(known, "finalizers "+enumerate(h.finalizers, maxFinalizers, ", "))
	}
	if !h.since.IsZero() {
		known = append(known, "since "+h.since.UTC().Format(time.RFC3339))
	}
	if h.because != "" {
		known = append(known, cut(h.because, maxBecause))
	}
	if len(known) == 0 {
		return entryIdentity(h.entry).String()
	}
	return entryIdentity(h.entry).String() + " (" + strings.Join(known, ", ") + ")"
}

// cut shortens a text to a number of bytes, never within a character.
func cut(text string, limit int) string {
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
