// Package gate decides whether a cluster may begin to change to a content of an add-on: its AddOnPolicy may be paused
// or ask for an approval, and MaintenanceWindows may be closed (docs/reference/policies.md).
//
//	Reader.Gate --AddOnPolicy, MaintenanceWindows of an add-on--> Gate
//	Gate.Judge(cluster, content, instant) --> Verdict: why it waits, and when that may change by itself
//
// A Gate is a value, and its decision a pure function. The planner of rollouts asks it about clusters of placements,
// and the configuration of an add-on where no placement installs it; nothing else does. A window that cannot be used
// holds the clusters that it selects: what it means is not known.
package gate
