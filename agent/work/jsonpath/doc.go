// Package jsonpath evaluates JSON paths on objects within bounds.
//
// Any author of a ManifestWork writes JSON paths, in feedback rules and in ignoreFields, so they may be long, and their
// evaluation may visit a part of an object many times. The parser is that of client-go, and a path has the same meaning
// there. Its evaluator is not used, because it has no bound.
package jsonpath
