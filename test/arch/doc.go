// Package arch holds the shape of Spokelet as tests: who may import whom, and what the source of every package looks
// like. rules_test.go has the rules as data, engine_test.go judges a graph of packages by them (and is itself tested
// with small invented graphs), source_test.go looks at the source, arch_test.go puts the real module through both.
//
// A rule that must change is changed here, in the same commit as the code that needs it, with the reason beside it.
package arch
