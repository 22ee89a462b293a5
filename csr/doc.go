// Package csr has what an agent and its hub agree on when the agent asks the hub for a certificate. The functions that
// build a request on the agent are those that check it on the hub.
//
//   - identity.go: the user and group names of clusters and of add-on agents, and the parsers of these names.
//   - request.go: the content of a request. A Request has the subject, the signer and the labels; ForCluster and
//     ForAddon make the two kinds, Build turns one into a CertificateSigningRequest, and ParseStrictly reads it.
//   - status.go: the conditions of a request object: whether it waits for a decision, when it was approved, and the
//     Comment in which the hub explains to the agent why it leaves the request alone.
//   - rotation.go: the instant at which a credential is replaced, between 75 and 80 percent of its lifetime.
//   - secret.go: the keys of the Secret in which the agent stores a credential.
//
// Three packages build on this one, and none of them imports another:
//
//   - csr/issue is the half of the agent: it gets, judges and renews a certificate.
//   - csr/approve is the half of the hub that judges requests.
//   - csr/sign is the half of the hub that signs for custom signers.
//
// The names, labels, signers, reasons and messages are those of the Open Cluster Management registration protocol.
package csr
