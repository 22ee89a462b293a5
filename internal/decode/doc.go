// Package decode reads objects one by one where they cannot be read as a whole, so that one object that Go cannot
// decode does not hide all others of its kind. An API server stores such objects, because a schema allows more than a
// Go type: a number beyond 32 bits, a duration without a unit.
//
// A list is decoded as a whole first, which costs what it always did. Only if that fails, the request is sent again,
// and what the API server answers is taken apart, as are the events of the watch that follows. An object that cannot be
// decoded is then replaced by its metadata with a mark that nobody else can write. It is in the caches, and it is
// unknown: reading it is an Error, and so is a list with it, unless the caller asks otherwise (LeaveOut, Metadata). So
// no reconciler takes it for an object that is gone.
//
//   - item.go decodes one object or event, or replaces it by its metadata. It is pure.
//   - transport.go takes the answers of an API server apart.
//   - source.go is one informer: what it lists and watches, the objects that it could not decode, and since when it
//     fails.
//   - objects.go is all informers of a program, and what is told about them.
//   - cache.go is the cache: what reads return for an object that is unknown.
package decode
