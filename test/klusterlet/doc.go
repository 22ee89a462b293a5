// Package klusterlet renders what the operator of an OCM Klusterlet puts on clusters for its agents: the Deployments
// with their arguments, probes, security contexts and volumes, the ServiceAccounts, and the rights on the cluster that
// the agents run on and on the managed cluster. We wrote it from docs/reference; it contains nothing of ours but the
// image. The suites run our agent with it, to show that it takes the place of OCM's agents.
package klusterlet
