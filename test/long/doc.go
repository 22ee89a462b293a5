// Package long plays the long tests beside each other for hours, and looks whether what the programs use stays flat.
//
// The children (children.go) are the commands of storm, both soaks and lies, each with a directory of its own, whose
// fleets sample what their programs use (package fleet). Each starts when the fleet of the one before it is there: a
// machine that starts all control planes at once is late with each of them. A child that fails does not end the others.
//
// Then each life of a program is judged (judge.go, which is pure): after a warm-up, the medians of the first and of the
// last quarter of its samples are compared, figure by figure. A life that is too short says nothing, so those of a
// program that is killed again and again are judged as if they were one, by percentile 90: how young they are is not
// what is judged. What may grow is a share, and a constant for each figure, since the number of objects is never the
// same. One table (table.go) has what the children said and all figures.
package long
