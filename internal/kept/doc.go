// Package kept is the memory of a process, for many goroutines at a time. Map keeps a value for each key, such as what
// a pass leaves for the next one about the same object. Texts keeps what was made of texts that others write, such as
// compiled expressions and templates, within a limit of bytes; Weigh estimates what decoded JSON takes of such a limit.
// The package knows nothing of what it keeps.
package kept
