// Package csr is the certificate protocol between an agent and its hub. It has both halves: the functions that build a
// request on the agent are those that check it on the hub.
//
//   - identity.go: the user and group names of clusters and of add-on agents, and the parsers of these names.
//   - request.go: the content of a request. A Request has the subject, the signer and the labels; ForCluster and
//     ForAddon make the two kinds, Build turns one into a CertificateSigningRequest.
//   - rotation.go: whether a stored pair of certificate and key is still valid, and when it is replaced: between 75 and
//     80 percent of the lifetime, at a point that a hash of the certificate selects.
//   - pending.go: a private key that waits for its certificate, in a Secret of its own, so that a restart does not lose
//     it.
//   - kubeconfig.go: the connection to a hub, and the kubeconfig beside a certificate.
//   - issue.go, issuer.go: the issuing client. From the pair, the pending key and the requests on the hub, Decide
//     derives the next step (pure); Issuer executes it. A crash between any two steps ends in the same one request.
//   - waiting.go: the conditions with which the hub explains why it leaves a request alone, and the messages of the
//     agent while it waits.
//   - approve.go, sign.go: the half of the hub.
//
// The names, labels, signers, reasons and messages are those of the Open Cluster Management registration protocol.
package csr
