// Package expressions is the part of CEL that all expressions share which other people write for our programs: the
// functions of Kubernetes, functions for strings whose results are limited (docs/adr/0032), and the cost of a call.
// Whoever evaluates expressions adds variables and a limit of the cost.
package expressions
