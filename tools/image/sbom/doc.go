// Package sbom writes what an image is made of, as a CycloneDX document: the program with the Go modules that were
// linked into it, the Go release, and the root certificates. The list of modules is the one that the Go linker left in
// the program itself, so it is that of this program and not of a build that is thought to be the same.
package sbom
