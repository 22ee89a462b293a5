// Package definition maintains the CustomResourceDefinitions of the hub, and the conversion of add-ons between API
// versions by the API server.
//
// The schema of a definition may belong to another client: Install applies ours without force, leaves a definition that
// has more than ours, and returns findings about it. The conversion has a field manager of its own. Without a
// conversion webhook, an API server renames the version, which drops every field with another name in the other
// version; with a webhook that does not answer, every request fails. Keeper watches the definitions whose versions
// differ:
//
//	watch --> Decide (pure) --> our webhook is set in spec.conversion, or a problem
//
// A problem fails the readiness of the hub manager and is recorded as an Event on the definition. The working webhook
// of another client is left alone. Whether one works is probed by a dry run in v1beta1, which the API server has to
// convert; ours is also checked in process, so a hub without changes costs no request.
//
// A writer that reverts spec.conversion is overruled at once the first time, and with growing pauses when it repeats
// that; an Event names the field manager (docs/adr/0004-versions-of-the-add-on-api.md).
package definition
