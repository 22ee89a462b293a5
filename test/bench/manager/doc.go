// Package manager measures the hub manager against one real API server, with clusters that package spokes plays, and
// holds the figures against the budgets of the design.
//
// Run starts a hub and the hub manager with its default settings and the rights that we ship, lets clusters join, and
// goes through the life of an add-on that is made of a template: installed by a placement, moved to a new template,
// left alone, uninstalled. Then it measures one add-on on one cluster that is real: with an agent and a control plane
// of its own. Grow does for several sizes of a fleet what must not depend on the size: the cost of one change, memory,
// and the start of the hub manager.
//
// Requests are counted by user in the audit log of the hub, leases and watches aside. Memory and processor time are
// those of the process of the hub manager. Every step ends when the hub manager has been quiet for some seconds; its
// time ends when the last add-on is Completed. Bare writers that send the same requests, without a hub manager, are the
// floor of the machine. docs/operations/benchmarks.md explains the table.
package manager
