// Package suite is what end-to-end suites are made of.
//
//   - suite.go: suites, scenarios and sessions.
//   - run.go: plays a suite: creates its clusters, runs its scenarios, exports logs, deletes its clusters.
//   - report.go: the table and the JUnit file.
//   - fleet.go: the clusters of a suite by their roles.
//   - install.go: installs and uninstalls what manifests/ ships, as a user does with kubectl apply -k.
//   - join.go: brings a cluster into the fleet.
//   - klusterlet.go: the agents of an OCM Klusterlet, with our image.
//   - works.go: works with one ConfigMap.
//   - observe.go: what is waited for in more than one suite.
package suite
