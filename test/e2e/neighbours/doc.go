// Package neighbours is the end-to-end suite of what people run beside Spokelet: add-ons in the shapes of those that
// they have, and the agents of an OCM Klusterlet with the settings of several releases. It needs no network: all
// programs are ours (cmd/neighbour), and have nothing of those whose shape they have. docs/operations/neighbours.md
// says what was played with the real ones.
//
// The hub is a managed cluster, too, under the name "home", with tokens as the credentials of its add-ons; and it is
// the hosting cluster of Klusterlets.
//
//   - suite.go: the clusters and the scenarios.
//   - install.go: installs and uninstalls.
//   - relay.go: two signers and a webhook on the hub, the shape of cluster-proxy.
//   - crew.go: a hub manager in Go, the shape of what is made with addon-framework.
//   - courier.go: tokens, and objects on the hub in a loop, the shape of managed-serviceaccount.
//   - lantern.go: hosted mode, with a hosting cluster that the hub finds.
//   - quarry.go: a DaemonSet with twenty objects, among them definitions and objects of their kinds.
//   - klusterlet.go: the Deployments of a Klusterlet in all modes.
package neighbours
