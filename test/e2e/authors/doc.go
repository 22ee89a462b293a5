// Package authors is the end-to-end suite of the sample add-ons in test/samples: their programs run in pods on the hub,
// with the rights that they print, beside the hub manager; their agents run in pods on the managed cluster.
package authors
