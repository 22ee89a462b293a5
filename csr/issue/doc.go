// Package issue gets certificates from a hub. It is the agent's half of the certificate protocol.
//
// An Issuer works on one Task at a time and takes one step with each call of Ask:
//
//   - issuer.go reads the pair in use, the pending key and the requests on the hub, and executes the next step.
//   - issue.go and waiting.go derive the next step from these facts, as pure functions. The agent creates at most one
//     request with one key, never gives up a valid pair before it has the next one, and pauses after a refusal.
//   - pending.go keeps the private key that waits for its certificate in a Secret of its own, so that a restart does
//     not lose it. The name of a request follows from its key, so a crash between any two steps ends in the same one
//     request.
//   - rotation.go judges a stored pair of certificate and key: whether it is valid for a request, and when the agent
//     replaces it.
//   - conditions.go builds the conditions that report the result, and says when to look at a wrong clock again.
//   - kubeconfig.go reads the connection to a hub from a kubeconfig, and writes the kubeconfig beside a certificate.
package issue
