// Package kept keeps what was made of texts that others write, such as compiled expressions and templates, within a
// limit of bytes. It knows nothing of what it keeps; Weigh estimates what decoded JSON takes of such a limit.
package kept
