// Package token is the other way to give an add-on its credential for the hub: a token of a ServiceAccount in the
// cluster's namespace on the hub, instead of a certificate. It holds both halves of that protocol, so that what the
// agent reads and what the hub writes are the same names and the same words.
//
//   - names.go: who is who. The ServiceAccount of an add-on, its user name, the Role that lets the cluster's agent ask
//     for tokens of it, and nothing else.
//   - conditions.go: what the two sides tell each other on the ManagedClusterAddOn. The hub says in
//     TokenInfrastructureReady that the ServiceAccount is there, and its UID stands in the message: that is the
//     protocol.
//   - judge.go: whether a stored token is still good, and when it is to be replaced. Like a certificate, it is replaced
//     between 75 and 80 percent of its lifetime, at a place that a hash of the token chooses once.
//
// Everything here is pure. The names, labels, reasons and messages are those of the Open Cluster Management
// registration protocol (contract, registration 2.7).
package token
