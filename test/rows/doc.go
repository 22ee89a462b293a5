// Package rows keeps the tables in docs/scenarios true: which test shows which scenario of the contract.
//
// A test says with a comment line "// Row: <id>" above it that it shows a scenario. A table has a line per scenario
// with its id, what happens in it, and the tests. "make rows" writes the last column from the comments; a test fails
// when a scenario has no test, when the column is not what the comments say, or when a comment names a scenario that no
// table has.
package rows
