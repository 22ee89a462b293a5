// Package numbers counts a fleet for the metrics of the hub manager: its clusters and add-ons by the code of what is
// wrong with them, how far rollouts are, the ages of heartbeats and the ends of certificates. The codes are those of
// internal/causes, so that a metric, a condition and kubectl spokelet say the same.
//
// It counts what is in the cache, when it is asked (count.go), and only while this process leads: a hub manager that
// waits for the lead has no numbers (collector.go). Labels have codes, states and names of add-ons, of which an
// administrator makes a few; none has the name of a cluster.
package numbers
