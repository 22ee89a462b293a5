// Package latency writes lines that tell a pipeline how long ManifestWorks take to their cluster: one JSON object a
// line, with the keys of OCM's agent, so that they join with the lines of a hub by the name, the namespace and the
// generation of a work. The feature gate ManifestWorkApplyLatency turns them on.
//
// A Log is written to by all passes. Begin says that a pass applies a work; what it returns takes the outcome of each
// resource and of the whole. A nil Log, and what it returns, write nothing.
package latency
