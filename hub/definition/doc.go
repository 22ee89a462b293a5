// Package definition looks after the CustomResourceDefinitions of the hub: that they are there, and that the API server
// converts the kinds of add-ons between their versions without a loss.
//
// The schema of a definition may belong to somebody else: Install applies ours without force, leaves a definition that
// has more than ours, and returns what it left. The conversion is a field of its own with another field manager. An API
// server converts by renaming the version where nobody says otherwise, which drops every field that has another name in
// the other version; and through a webhook that nobody serves it converts nothing, so that every request fails. Keeper
// watches the definitions whose versions differ:
//
//	watch --> Decide (pure) --> our webhook is put into spec.conversion, or a problem
//
// A problem fails the readiness of the hub manager and is told in an Event on the definition. A webhook of somebody
// else that serves is left alone. Whether one serves is found out by a dry run in v1beta1, which the API server has to
// convert; ours is asked in process besides, so a hub without changes costs no request.
//
// Whoever sets spec.conversion back is overruled at once the first time, and with growing pauses when that goes on; an
// Event names the field manager (docs/adr/0028-conversion.md).
package definition
