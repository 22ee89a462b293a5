// Package jsonpath evaluates JSON paths on objects within bounds.
//
// The authors of ManifestWorks write the paths, in feedback rules and in ignoreFields, so a path may be long, and its
// evaluation may visit any part of an object many times. client-go parses the paths, and they mean what they mean there.
// The evaluator of client-go is not used, because it has no bound.
package jsonpath
