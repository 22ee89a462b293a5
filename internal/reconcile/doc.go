// Package reconcile is the kit that every reconciler of Spokelet is built with. A reconciler observes, decides, acts,
// concludes, publishes its status once and settles; the first four are its own, this package holds the last two:
//
//   - Outcome names the five ways a pass can end (done, waiting, retry, stalled, lost race). Settle converts one to the
//     result of Reconcile; SettleIn also keeps the wake time of a pass that failed.
//   - PatchStatus and PatchMain write the difference between two copies of an object, once, guarded by UID and
//     resourceVersion, and not at all when nothing differs.
//   - SetCondition merges a condition and moves its transition time only when the status flips.
//   - SetupAll adds reconcilers to a running manager; Options are the options that all controllers share.
//   - Gate is a mutex for those who ask a cache or an API server meanwhile.
//   - Turns leave workers to short passes, where some are long.
//   - Contain turns a panic in a goroutine into an error.
//
// The package does not read the clock: the caller passes the time that it observed.
package reconcile
