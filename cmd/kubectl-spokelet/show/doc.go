// Package show writes answers for a terminal: tables, trees and chains of steps. What comes from objects of a fleet is
// hostile until it is Safe: without escapes of a terminal, line breaks and marks that turn the direction of a text.
// SafeJSON and SafeYAML escape these. In a pipe, with NO_COLOR or TERM=dumb there is no colour, and with LANG=C no line
// that is not ASCII.
package show
