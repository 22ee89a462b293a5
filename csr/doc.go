// Package csr is the certificate protocol between an agent and its hub, with both halves in it: what the agent writes
// and what the hub checks are the same functions.
//
//   - identity.go: who is who. The user and group names of clusters and of add-on agents, and the way back from a name.
//   - request.go: what is asked for. A Request says subject, signer and labels; ForCluster and ForAddon make the two
//     kinds that there are, Build turns one into a CertificateSigningRequest.
//   - rotation.go: whether a stored pair of certificate and key is still good, and when it is to be replaced. The
//     instant lies between 75 and 80 percent of the lifetime, at a place that a hash of the certificate chooses once.
//   - pending.go: a private key that waits for its certificate, in a Secret of its own, so that a restart does not lose
//     it.
//   - kubeconfig.go: how the hub is reached, and the kubeconfig that stands beside a certificate.
//   - issue.go, issuer.go: the issuing client. From the pair, the pending key and the requests on the hub, Decide tells
//     the one next step (pure); Issuer does it. A crash between any two steps ends in the same one request.
//   - waiting.go: what the hub says about a request that it leaves alone, and what the agent says while it waits.
//   - approve.go, sign.go: the half of the hub.
//
// The names, labels, signers, reasons and messages are those of the Open Cluster Management registration protocol.
package csr
