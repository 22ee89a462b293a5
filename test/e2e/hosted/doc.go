// Package hosted is the end-to-end suite of agents that run on a hosting cluster, and of agents that take the place of
// those of an OCM Klusterlet. It needs a hub, a hosting cluster and a managed cluster.
//
//   - suite.go: the clusters and the scenarios.
//   - install.go: installs and uninstalls.
//   - page.go: runs the commands of docs/operations/hosted.md.
//   - agent.go: the agent on the hosting cluster: works, its kubeconfig, an outage of the managed cluster.
//   - addon.go: a hosted add-on.
//   - dropin.go: the Deployments of a Klusterlet with our image.
package hosted
