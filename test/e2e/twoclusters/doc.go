// Package twoclusters is the end-to-end suite of a hub and a managed cluster.
//
//   - suite.go: the list of scenarios.
//   - install.go: install, join, upgrade, uninstall.
//   - hello.go: the sample add-on: enabled by a placement, configured, with certificates that rotate.
//   - addons.go: add-ons of other kinds: a DaemonSet, a hook, an object that stays, pods that do not start.
//   - faults.go: pods are deleted, a node is restarted, the hub is away.
//   - works.go: works of a ConfigMap each.
//   - memory.go: what our pods need.
//   - addons/: the add-ons of these scenarios.
package twoclusters
