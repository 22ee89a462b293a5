// Package text shortens texts for messages.
package text

import "unicode/utf8"

// Shorten cuts a text to a number of bytes, never within a character. A text that was cut ends in three dots.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const more = "..."
	end := max(limit-len(more), 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}
