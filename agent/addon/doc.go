// Package addon serves the add-ons of this cluster: it gives each add-on agent its hub credential and tells the hub how
// the agent is.
//
// There is one Reconciler and one pass for each add-on. It reads the ManagedClusterAddOn in the cluster's namespace on
// the hub, and then
//
//   - declares with which driver it gets credentials for the hub (csr or token), and with tokens also for whom;
//   - gets a certificate or a token for each entry of status.registrations and keeps it in a Secret in the add-on's
//     namespace, on the cluster where the add-on agent runs;
//   - turns the lease of the add-on agent into the condition Available, where the add-on asks for that, and says the
//     likely cause when the agent is silent;
//   - where the hub tells the health by the workloads instead, says why pods are not ready while the hub finds them so;
//   - removes Secrets that no add-on needs any more;
//   - writes all it found out in one patch of the status.
//
// What must survive a restart lives in the cluster: every Secret carries labels that say whose it is, so that one whose
// add-on went away while the agent was down is found and removed, and a key that waits for its certificate rests in a
// Secret of its own (package csr).
//
// A credential in use is never given up before its successor is there, whatever changes: the subject, the signer, the
// driver, the namespace or the cluster. Keys of the other driver go in the very write that brings the successor.
// Nothing is removed on the ground of something that could not be read, nor while an add-on is being deleted, because
// its last duties may need the hub.
//
// Leases, and namespaces that are waited for, are watched one by one (watch.go): a cluster has many of both, and only a
// few are of interest here. The cause of a silence, or of pods that are not ready, is looked for on demand and with
// growing pauses (look.go, workloads.go), and only while there is one: an add-on at rest costs no request.
package addon
