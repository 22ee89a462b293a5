// Package ignore removes the fields from a manifest that a work leaves to others (ignoreFields of ServerSideApply): those
// that JSON paths, JSON pointers and jq path expressions find.
//
// Authors of ManifestWorks write these expressions, so they are bounded: their length, the values that JSON paths visit,
// the time that jq runs, and the functions of jq, of which only those are supported that make nothing larger than their
// input.
package ignore
