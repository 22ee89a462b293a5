// Package policies has the API types of Spokelet's own group addon.spokelet.io/v1alpha1: AddOnPolicy says whether and
// how a fleet may get changes of an add-on, MaintenanceWindow when clusters may (docs/reference/policies.md). The
// definitions are below manifests/crds/hub; a test compares their fields with these types.
package policies
