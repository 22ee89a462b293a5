// Package window reports in the status of each MaintenanceWindow which clusters it selects, whether it is active on any
// of them, when it begins next, and why it cannot be used. It decides nothing: package gate does.
//
// A pass starts when a window changes, when the labels or claims of a cluster change that it names, and when it begins
// or ends.
package window
