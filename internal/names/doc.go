// Package names holds the identifiers that more than one package of Spokelet must spell the same way: labels,
// annotations, finalizers, well-known namespaces and objects, controller names, and the register of who writes which
// condition. Names that belong to a protocol live with the protocol (packages csr and lease), not here.
//
// The values are those of the Open Cluster Management APIs; each is part of the wire contract and never changes.
package names
