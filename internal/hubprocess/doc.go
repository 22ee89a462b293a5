// Package hubprocess has what the programs with reconcilers of a hub share: the hub manager, and the program of an
// author of add-ons (package hub/addon/manager).
//
//   - connection.go lists the kinds, configures the clients, remembers the resources of our kinds, and ends the program
//     when the hub serves add-ons in another version.
//   - manager.go builds the manager of controller-runtime that runs the reconcilers.
//   - pages.go lets the caches read long lists in pages.
//   - trim.go has the transformations of the caches, so that these hold what is looked at. bound.go bounds what they
//     keep of objects that tenants and agents fill up.
//   - health.go answers /healthz and /readyz, with the cause of each failed check.
package hubprocess
