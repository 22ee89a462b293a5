// Package watch knows the state of the objects of all works, so that an object that did not change costs no request.
//
// A Store has one State per object and owner: the last request of this process that succeeded or failed for good, the
// object as it was then, what was read from it for the hub, and its deletion. A Watcher keeps one metadata-only watch
// for each resource and namespace with such objects, or where those are too many for a resource, and passes each event
// to the Store. Drift compares the last event with the last request; an event that only reports our own write, or only
// a new status that no rule reads, changes nothing, and every other one wakes the owners of the object.
//
// The Store is a cache: without it the agent does the same with more requests. An owner claims its objects before the
// first request about them, so that no event after that is missed, and an owner that is gone leaves nothing behind.
package watch
