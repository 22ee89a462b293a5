// Package watch lists and watches objects at an API server for callers that need less of them than a cache keeps.
//
// A Watch runs a reflector of client-go until its context ends and hands every object to a Handler. It keeps no object
// itself. Store is the Handler for callers that need the present state of all objects: it keeps one small value for
// each. Set starts and stops one Watch per key as the wanted keys change. Named is a source of a controller that
// watches objects by their names while a pass waits for them, and a reader that keeps what has not changed since.
//
// Every Watch behaves alike:
//
//   - After a failure it starts again. The pause begins at one second and doubles up to 30 seconds, or up to five
//     minutes after an answer that does not change by itself, such as Forbidden. A watch that ended normally starts
//     again at once, but slower and slower if it keeps ending early.
//   - A watch that was interrupted continues at its resource version only if the API server has reached that version.
//     A store that was restored from a backup has not: then everything is listed again.
//   - With Source.EventsOnly it shows changes and no objects that were there before, at the cost of one object of a
//     list. It goes on at its version after a failure; where it cannot, the Handler receives an empty list.
//   - With Relist it lists again after that time, which corrects what a watch may have missed.
//   - Ended reports every end with its error before the pause. Silent reports, once, a watch that keeps failing and
//     delivers no list, whatever the error, so that the caller can fall back to polling; the log says so, too.
//   - A panic in a Handler is logged with its stack and counts as a failure of the watch.
package watch
