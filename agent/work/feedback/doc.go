// Package feedback evaluates the feedback rules of a ManifestWork (well-known status, JSON paths), which return values,
// and its condition rules (well-known conditions, CEL expressions), which return conditions.
//
// The package has no client. Its input is an object and the rules for it; its output is values, rule results with their
// messages, and the cost of the evaluation. Any author of a ManifestWork writes these expressions, so their length,
// their cost and the size of their results are bounded.
package feedback
