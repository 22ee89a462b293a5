// Package generated makes the files that are generated for what ships: the objects of the Helm chart, from the
// kustomize bases, the table of its values in the documentation, from its schema, alerts and dashboards in all forms
// that ship, and the objects of overlays that tests of the main module run. Command generate writes them, and a test
// compares them.
package generated
