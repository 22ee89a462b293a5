// Package hashes reports the spec hashes of the configurations of an add-on in the status of its
// ClusterManagementAddOn, for a hub manager that leaves this to the manager of the add-on.
//
// OCM's hub manager does so for every kind, ours for kinds that it may not read. Both enter the references, without a
// hash where they know none, and roll a configuration out only when its hash is known (docs/reference/hub.md,
// "Authors' programs"). So this reconciler changes hashes and nothing else, of references that are there, to
// configurations of kinds that the add-on understands. The hash of a configuration that is missing or that cannot be
// read stays as it is, and so does one that changed until the API server confirms it: the cache may be behind.
//
// It also has the configurations of other kinds than AddOnDeploymentConfig watched, for all reconcilers of the process.
package hashes
