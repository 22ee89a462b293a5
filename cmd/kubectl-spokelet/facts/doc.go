// Package facts reads the objects by which package report judges: of a whole fleet, of one add-on, of a cluster, and of
// the hub itself. A Snapshot keeps those of a fleet for several answers.
package facts
