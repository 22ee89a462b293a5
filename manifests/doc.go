// Package manifests holds everything that Spokelet ships as YAML, embedded, so that the binaries, the tests, the demo
// and a person with kubectl all install the same bytes.
//
//   - crds.go: the CustomResourceDefinitions of the OCM APIs, byte for byte those of the pinned API module
//     (regenerate with "go run ./manifests/gen"; a test fails when they differ), and the conversion stanza, ours.
//   - hub.go: the hub manager: namespaces, its service account and RBAC, and the bootstrap identity of clusters.
//   - klusterlet.go: the agent on a managed cluster: namespaces, its service account and RBAC; and the agent of another
//     cluster on a hosting cluster.
//   - samples.go: add-ons to start from.
//
// The folders are plain kustomize bases too: kubectl apply -k works on each of them but crds, which are applied with
// -f. overlays has examples of what to make of the bases. chart is the Helm chart of the same objects: its files are
// written from the bases by "make chart".
package manifests
