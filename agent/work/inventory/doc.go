// Package inventory keeps the AppliedManifestWork of a ManifestWork: the record, on the spoke, of all objects that
// belong to the work. Everything that must survive a restart stands there.
//
// An object is recorded before it is created: the annotation AnnotationIntent names it, so that a crash right after the
// creation leaves no object that nobody knows of. Once it exists it is in status.appliedResources with its UID, and
// it leaves the list only when it is gone. The AppliedManifestWork owns its objects by owner references; several of
// them may own one object.
//
// The functions of the package compute, and a Writer sends the requests.
package inventory
