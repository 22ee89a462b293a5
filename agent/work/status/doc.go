// Package status computes the conditions of a ManifestWork and of its manifests from what a pass learned about their
// objects. It is pure: the same facts give the same status, and a status that did not change is the same value.
//
// A condition keeps its transition time until its status flips. What could not be read stays as it was; an object that
// is gone has no feedback and no conditions of rules, except that it was complete. All texts of a status share one
// budget, so that the API server always accepts it.
package status
