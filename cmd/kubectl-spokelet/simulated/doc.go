// Package simulated has hubs that tests and benchmarks of the plugin look at: Hub serves the lists of a fleet as an API
// server does, in pages and with the managed fields of real objects. Large is a fleet of any size, and Shop one with
// something broken and a rollout that moves from step to step. No program that ships imports it.
package simulated
