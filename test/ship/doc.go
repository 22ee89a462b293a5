// Package ship tests what ships as YAML: the kustomize bases and overlays of manifests/, the Helm chart, and the
// commands of the pages about installing. It is a module of its own, so that the product does not link Helm and
// kustomize.
//
//   - render: what kustomize and Helm make of the files.
//   - generate: writes what is generated: the objects of the chart, from the bases, and the table of its values.
//   - kubectl: kubectl, so that the commands of the documentation run where none is installed. Helm is a tool of this
//     module.
package ship
