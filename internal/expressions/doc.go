// Package expressions is the part of CEL that all expressions share which other people write for our programs: the
// functions of Kubernetes, functions for strings whose results are limited (docs/adr/0001), regular expressions and
// quantities that are limited before they take memory, lists and maps that know their size, the cost of a call, and a
// limit of what compiled expressions take. A caller adds variables and a limit of the cost. What is made of a text and
// used again, a compiled expression or a parsed path, is in one kind of cache with a limit (Kept).
package expressions
