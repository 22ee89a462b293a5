// Package cli has the commands of "kubectl spokelet". A command reads a fleet (package fleet), judges it (package
// report) and writes the answer (package show, or JSON and YAML). Only approve writes to the hub.
//
// The exit status is 0 where all is well, 1 where a problem was found, 2 for a wrong use, 3 where it could not look, or
// could not read all that may hide a problem, and 4 where the time of --wait ran out.
package cli
