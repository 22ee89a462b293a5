// Package operations has the page of messages for programs that show it: the plugin explains its codes with the text of
// the page.
package operations

import _ "embed"

//go:embed messages.md
var messages string

// Messages returns the page of messages, in Markdown.
func Messages() string { return messages }
