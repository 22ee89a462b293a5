// Package oci makes images out of files, without a container engine: a layer per list of files, the configuration, an
// index of all platforms with their SBOMs, and the two forms on disk. An OCI layout is for registries, an archive for
// the engine of this machine.
//
// The same input makes the same bytes. Entries are sorted, belong to nobody in particular, and have no time; nothing is
// read from the clock or from the machine.
//
// Inspect reads an image back, and Check compares it with what it is to be. So a mistake in the assembly does not go
// unnoticed because the check made it, too.
package oci
