// Package kept keeps what was made of texts that others write, such as compiled expressions and templates, within a
// limit of bytes. It knows nothing of what it keeps.
package kept
