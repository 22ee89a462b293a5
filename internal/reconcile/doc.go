// Package reconcile is the kit that every reconciler of Spokelet is built with. A reconciler observes, decides, acts,
// concludes, publishes its status once and settles; the first four are its own, this package holds the last two:
//
//   - Outcome names the five ways a pass can end (done, waiting, retry, stalled, lost race) and Settle turns one into
//     what controller-runtime wants, and SettleIn keeps the wake instant of a pass that failed.
//   - PatchStatus and PatchMain write the difference between two copies of an object, once, guarded by UID and
//     resourceVersion, and not at all when nothing differs.
//   - SetCondition merges a condition and moves its transition time only when the status flips.
//   - Fraction spreads a fleet in time by a hash of what is spread, the same at every look and after every restart.
//
// Time never comes from the wall clock here: the caller passes the instant that it observed.
package reconcile
