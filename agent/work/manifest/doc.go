// Package manifest understands the entries of spec.workload.manifests of a ManifestWork: which object each one means,
// where the API server serves it, which options of the spec apply to it, its place in the order of applying, a digest
// of the desired state, and the error of a manifest that cannot be applied. The package sends no request; looking up
// kinds is left to a RESTMapper.
//
// What cannot be decoded or mapped keeps as much of its identity as could be read, because nothing may be deleted that
// such a manifest may mean.
package manifest
