// Package health judges the health of an add-on from its ManifestWorks (docs/reference/hub.md, "Health"). It is pure:
// values in, a condition out.
//
//   - options.go has the feedback rules that a probe needs on the works.
//   - judge.go concludes the condition Available from the works and the values that the cluster feeds back.
//   - workload.go judges one Deployment, DaemonSet or StatefulSet; work.go judges by the probe of an author.
//
// The works are those of one side: of an add-on in hosted mode those for its hosting cluster, of any other those for
// its managed cluster.
package health
