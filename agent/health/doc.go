// Package health serves the state of the agent over http and https, in words, for people, kubelets and load balancers.
//
// /healthz responds with 200 as long as the process lives, and /readyz with 200 while the agent serves or stands by.
// Both name what the agent is doing, and an outage of the hub, of a managed cluster elsewhere, or of the ServiceAccount
// under which works are applied. An agent that waits for an approval is healthy: a restart would help nobody. One whose
// hub does not respond is also ready, for everything that needs no hub; /readyz/hub alone fails then.
//
// Causes are told to clients on the loopback address only (package probe).
//
// state.go is that state, serve.go its endpoints, certificate.go their TLS, metrics.go what it is in metrics.
package health
