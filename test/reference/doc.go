// Package reference keeps docs/reference true to the code.
//
// Its tests fail with a sentence when a condition type, a reason, the reason of an Event, a metric or a flag is in the code
// and not in the reference, or the other way round; when a comment cites a heading that does not exist; and when a relative
// link in a document leads nowhere. "make rows" writes the tables of flags from the programs themselves.
package reference
