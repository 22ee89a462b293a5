// Package report plays the short forms of all long tests and the benchmarks, one after the other, and writes one report
// of what they printed: docs/report.md for people, and the same as JSON for the next report.
//
// Each part is a command of the Makefile, with its seed, so that anybody can repeat a part alone. Its output is kept as
// the rows of its tables. Nothing is compared with another machine: times and memory are in the report as they were
// measured. What is compared with the last report are the rows that relate a figure to the same writes without us in
// the same run ("1.15x of 3.5s bare"), each measured in several runs: what lies within the range of the other report is
// noise.
package report
