// Package objectwatch watches single objects of any kind, each by its name, for callers that are given references to
// objects and not their kinds.
//
// A Watcher keeps one watch for each referenced object and none for a kind or a namespace: one ConfigMap that is a
// configuration costs one watch, however many ConfigMaps there are. Owners replace the references that they want; the
// watch of an object ends when its last owner drops it. Get returns the object, or that it is missing, or why it is
// unknown, and a callback reports every change of that answer.
//
//   - A reference has a group and a resource but no version. The version is the preferred one of the group, or the
//     next that serves the resource. A kind that is not served is looked up again after a second, and later every 30
//     seconds.
//   - A watch that is interrupted starts again, as package watch does it; meanwhile the last answer remains. One that
//     is refused makes the object unknown and is tried again after as long as it has been refused, at most five
//     minutes, and as soon as another watch of the same resource is permitted.
//   - The number of watches is bounded. Objects beyond the bound are unknown until other objects are dropped. So are
//     those that an owner names beyond its own share, unless another owner wants them.
//   - Objects are kept without their managed fields, their status and the annotation of kubectl apply.
//
// The API server authorizes a watch of a single object by its name, so RBAC rules with resourceNames suffice.
package objectwatch
