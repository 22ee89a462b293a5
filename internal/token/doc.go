// Package token is the second protocol by which an add-on gets a credential for the hub: a token of a ServiceAccount in
// the cluster's namespace on the hub, instead of a certificate. It has both halves of the protocol, so that agent and
// hub use the same names and messages.
//
//   - names.go: the ServiceAccount of an add-on, its user name, and the Role that allows the cluster's agent to request
//     tokens of it, and nothing else.
//   - conditions.go: the conditions of the ManagedClusterAddOn by which the two sides communicate. With
//     TokenInfrastructureReady the hub reports that the ServiceAccount exists; the message contains its UID.
//   - judge.go: whether a stored token is still good, and when it is to be replaced. Like a certificate, it is replaced
//     between 75 and 80 percent of its lifetime, at a place that a hash of the token chooses once.
//
// Everything here is pure. The names, labels, reasons and messages are those of the Open Cluster Management
// registration protocol (docs/reference/registration.md, "Tokens").
package token
