// Package apiserver is an API server in memory, for fleets that live in one process and in virtual time.
//
// A client reaches it by a transport (Server.Transport) and cannot tell it from a real one by what the reconcilers of
// this project do: it serves discovery, reads, writes, patches, lists in pages, and watches that go on at a version, in
// JSON and, for metadata alone, as PartialObjectMetadata. It is honest about
//
//   - resource versions: one count for all objects, conflicts, writes that change nothing, versions that are forgotten;
//   - generations, status as a subresource, defaults and unknown fields by the schemas of definitions;
//   - versions: an object is stored in one, and each request and watch sees its own, converted by the webhook of the
//     definitions (Options.Webhook), which gets the reviews that a real API server sends, or by renaming;
//   - times of writes, as far as managedFields have them: none for a write that only takes fields away;
//   - finalizers, owner references and namespaces: what real API servers leave to controllers happens at once.
//
// It grants everything to everybody, evaluates no rules in CEL, fills in nothing for kinds that are built in, and
// serves no server-side apply. What plays controllers changes objects as they are stored, where real controllers write
// the preferred version. All that is for the tests on real control planes. A test compares it with a real API server by
// the same random requests (test/integration/apiserver).
//
// All it waits for is the clock and other goroutines, so that it works in a bubble of testing/synctest.
package apiserver
