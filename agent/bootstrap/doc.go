// Package bootstrap is where the first credential of an agent comes from: bootstrap kubeconfigs, each a file or a
// Secret, of one hub or several.
//
//   - source.go: a bootstrap kubeconfig is read, and checked as far as that needs no request. Is it missing or broken,
//     that is a part of the result; an error means that its content is unknown.
//   - kubeconfig.go: kubeconfig files, with the files that they name.
//   - selector.go: the choice among several hubs (feature gate MultipleHubs), and hubs that denied the cluster;
//     return.go goes back from one that is being joined to one that comes first, when that is there again.
//   - watcher.go: the end of a phase of the agent when a bootstrap kubeconfig, or another input of the choice of the
//     phase, changes; files.go watches files for it.
package bootstrap
