// Package hub is the composition root of the hub manager: one process, one manager of controller-runtime, and the list
// of reconcilers that make up the hub side of Spokelet. A hub comes up in this order:
//
//  1. Config is checked, as a whole and before any request.
//  2. The certificate of the webhook is read or made (package certificate). With --install-crds the
//     CustomResourceDefinitions are applied (package definition): the schema by server-side apply without force, so
//     that definitions that another client keeps are left to them, and the conversion of add-ons by itself.
//  3. The admission policies of the hub are checked (package policy): without them nothing starts, unless that is asked
//     for.
//  4. The version in which add-ons travel is asked for once: v1alpha1 where it is served.
//  5. cache.go selects the objects that the cache holds. No Secret is ever cached.
//  6. The reconcilers are registered (reconcilers.go), the webhook (webhook.go), and what keeps the conversion in the
//     definitions (crds.go). The hub manager itself does not need the webhook, and works without it; but it is not
//     ready until the API server converts add-ons without a loss (ready.go, docs/adr/0004).
//
// Run can be called again in the same process after it returned; it keeps nothing outside of what it builds.
package hub
