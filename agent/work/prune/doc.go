// Package prune deletes the objects that a work no longer wants, in the reverse of the order of applying: custom
// resources before their definitions, workloads before the permissions and namespaces that they need to clean up.
//
// Three verbs: an object is deleted when our AppliedManifestWork is its only one, it is orphaned (it loses our owner
// reference and stays) when the work says so or when another AppliedManifestWork owns it, and its entry is dropped
// without a request when it is not ours or is gone. What cannot be read is never dropped.
//
// A rank begins when the one before is gone. An object that does not go, because a finalizer stays or the API server
// refuses, blocks the ranks after it for a timeout, counted from its deletion timestamp: long enough for a controller
// to do its work, and not for ever where nobody removes the finalizer. Nothing is lost by that: an object that is not
// gone stays listed.
//
// Roles and bindings begin only when the custom resources that went are out of the record, because a work may bring the
// right of the agent to them: what is recorded is read, and what may not be read is never dropped.
package prune
