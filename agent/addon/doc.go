// Package addon serves the add-ons of this cluster: it gives each add-on agent its hub credential and reports the
// health of the agent to the hub.
//
// There is one Reconciler and one pass for each add-on. It reads the ManagedClusterAddOn in the cluster's namespace on
// the hub, and then
//
//   - declares the driver of its credentials for the hub (csr or token), and with tokens also the subject;
//   - gets a certificate or a token for each entry of status.registrations and stores it in a Secret in the add-on's
//     namespace, on the cluster where the add-on agent runs;
//   - derives the condition Available from the lease of the add-on agent, if the add-on uses that, and adds the likely
//     cause when the lease is not renewed;
//   - explains why pods are not ready, if the hub derives the health from workloads instead;
//   - deletes Secrets that no add-on needs any more;
//   - writes the status in one patch.
//
// State that must survive a restart lives in the cluster: every Secret has labels that name its owner, so that the
// Secret of an add-on that was deleted while the agent was down is found and deleted, and a key that waits for its
// certificate is in a Secret of its own (package csr/issue).
//
// A credential in use is never given up before the new one is stored, whatever changes: the subject, the signer, the
// driver, the namespace or the cluster. The update that stores the new credential also removes the old driver's keys.
// Nothing is deleted because of something that could not be read, nor while an add-on is being deleted, because its
// cleanup may need the hub.
//
// Leases, and namespaces that a Secret waits for, are watched one by one (watch.go): a cluster has many of both, and
// only a few matter here. The cause of a lease that is not renewed, or of pods that are not ready, is looked for on
// demand and with growing pauses (inspection.go, workloads.go), and only while there is one: a healthy add-on costs no
// request.
package addon
