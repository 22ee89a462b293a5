// Package works plans the ManifestWorks of an add-on on a cluster. It is pure: values in, steps out.
//
//   - manifest.go encodes objects, and has feedback rules, update strategies and orphaning rules. divide.go divides
//     them by side (managed or hosting cluster) and by purpose (deploy or pre-delete).
//   - set.go has the names, labels and owners of a set of works, and which works belong to it.
//   - plan.go plans a set: an object stays in its work, a work stays below the size limit, and a new work gets the
//     first free number. slot.go tells what a work must keep of the objects that move to other ones, so that none is
//     deleted in between, and lets no work wait for a work that waits. spec.go renders a work and compares it with the
//     existing one. hook.go plans the work of a hook.
//   - digest.go replaces the manifests of cached works by digests, which is all that a plan compares. large.go does so
//     with options that are too large to be kept. rendered.go records on a work which inputs it was rendered from, and
//     by which version.
//
// Nothing here reads or writes. A plan is the same for works with manifests and for works with digests. Where a step
// keeps a part of a work, and the cache has digests, Whole puts in the manifests.
package works
