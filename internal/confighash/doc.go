// Package confighash computes the spec hash of configurations of add-ons. The hub records the hash next to every
// configuration that an add-on uses; another hash means that the configuration changed.
//
// The hash is part of the wire contract (docs/reference/hub.md, "Hash of a configuration") and therefore exact to the
// bit: it covers the object as the API server shows it in one certain version, without apiVersion, kind, metadata and
// status. Pack keeps that content in a cache as the JSON that is hashed, and Unpack decodes it. Kind names the two
// kinds that every hub knows, in the versions in which they are hashed.
package confighash
