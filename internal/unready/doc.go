// Package unready says why a Deployment or a DaemonSet is not ready, and what keeps a pod from running, in words for
// the person who mends it. The agent writes these words on a ManagedClusterAddOn, and "kubectl spokelet" prints them
// where it looks into a cluster itself, so that a condition and the command cannot disagree. Its functions are pure.
package unready
