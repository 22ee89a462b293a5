// Package setbinding reports in the status of each ManagedClusterSetBinding whether its set is bound. The condition is
// that of OCM, so it does not matter which hub manager writes it, and placement controllers of others can rely on it.
//
// A pass starts when a binding changes, and when its set is created or deleted.
package setbinding
