// Package bugs puts bugs back that were found once, one at a time, and reports which program notices each. It shows
// that a day of a fleet, the ways to one state, the games and the storms find what they are for, and that a test which
// is rewritten still does.
//
//   - list has a file for each bug: what it is, where it came from, which programs should notice it, where
//     else its tests are, and the text of the code with and without it. Package bug.go reads them. A text that is not
//     found any more is an error, so a change of the code carries the list along.
//   - programs.go has what can notice a bug.
//   - play.go compiles a program with a bug in it, without a change of the files, and runs it.
//   - page.go writes the list of the bugs and what noticed them.
package bugs
