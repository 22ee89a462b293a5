// Package scene plays a fleet of which there is something to see on dashboards: a hub and two managed clusters of
// package harness, each real, and any number that package spokes plays for the hub. Add-ons are installed everywhere,
// one is rolled out in waves, and each kind of trouble can be made: an agent without its hub, a rollout that stops, an
// add-on that cannot be rendered, objects that others change or keep, works that the hub lost, certificate requests
// that are left alone, a cluster that waits to be accepted.
package scene
