// Package picture draws a dashboard as an SVG from the answers to its queries, for the documentation: the grid, the
// titles, and panels of the four kinds that ours have, with their units, thresholds, colours, words and legends. It is
// not Grafana, and looks alike: what a person reads in a panel is the same.
//
// picture.go lays out, field.go says how a value is shown, and each kind of panel has a file. svg.go writes shapes and
// texts; a text that may be too long is cut, by an estimate of its width.
package picture
