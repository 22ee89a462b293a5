// Package rows keeps the tables of behaviours in docs/reference and docs/security.md true: which test shows which
// behaviour.
//
// A test says with a comment line "// Shows: <page>/<name>" above it that it shows a behaviour; several are separated
// by commas. A table of behaviours has the header "| name | behaviour | tests |" and a line per behaviour with its
// name, one sentence, and the tests. "make rows" writes the last column from the comments; a test fails when a
// behaviour has no test, when the column is not what the comments say, or when a comment names a behaviour that no
// table has.
package rows
