// Package command is what the composition roots have in common: how the arguments of a program are parsed, where its
// logs go, and in which namespace it runs.
package command
