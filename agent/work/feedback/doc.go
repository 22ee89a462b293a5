// Package feedback reads from an object what a ManifestWork wants to know of it: the values of feedback rules
// (well-known status, JSON paths) and the conditions of condition rules (well-known conditions, CEL expressions).
//
// It has no client: its input is the object and the rules, its output are values, rule results with messages, and the
// cost of the evaluation. Expressions are bounded in length, cost and size of what they make, because any author of a
// ManifestWork may write them.
package feedback
