// Package ignore removes the fields from a manifest that a work leaves to other writers (ignoreFields of the strategy
// ServerSideApply). JSON paths, JSON pointers and jq path expressions select them.
//
// Any author of a ManifestWork writes these expressions, so they are bounded: the length of each, the number of values
// that JSON paths visit, and the time that jq runs. Of the functions of jq only those are supported that return no more
// than they receive.
package ignore
