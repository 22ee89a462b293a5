// Package measure reads what a benchmark compares: what users sent to an API server, from its audit log; memory and
// processor time of a process, from Linux; and it prints the figures with their budgets as one table.
package measure
