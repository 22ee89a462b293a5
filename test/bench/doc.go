// Package bench measures the agent against real control planes and holds the figures against the budgets of the design.
//
// Run starts a hub and one managed cluster, one agent process with its default settings and the rights that we ship,
// and goes through the life of 200 works of ten ConfigMaps: applied all at once, one changed, one disturbed on the
// cluster, nothing at all for a minute, all deleted. Where the budget is a multiple of the bare cost, ten writers
// without any agent write or delete the same objects on the same API server in the same run.
//
// Requests are counted by the audit log of the managed cluster, and only those of the agent, leases and watches aside;
// memory and processor time are those of the process. The machine is shared: figures compare within one run.
package bench
