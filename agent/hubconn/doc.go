// Package hubconn is the connection of the agent to its hub.
//
//   - connection.go: one transport for all clients of a serving phase, whose client certificate can be replaced while
//     it is in use.
//   - probe.go: a request now and then with a credential that the hub rejected.
//
// The others are middlewares of that transport. Each of them learns something about the hub from the responses to
// requests that are sent anyway:
//
//   - responses.go: the hub rejects the certificate (401) for a while.
//   - watchdog.go: one hub of several has not responded for too long.
//   - reachability.go: the hub does not respond, and why. That is logged once; errors that it explains need no log.
//   - clock.go: the time at the hub, by which certificates are valid.
package hubconn
