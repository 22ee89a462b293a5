// Package fleets plays generated fleets against the decisions of the hub manager, and checks after every step what must
// hold for every fleet (its properties).
//
// A Property is a game: it draws a world from a random source, lets the decision and the world take turns, and reports
// what was violated. Every game has its own source, made from the seed of the run and its number, so that one game can
// be played again alone. The judge of a game knows what was drawn and computes by itself what must hold: it shares no
// code with the decision.
//
//	Rollout     hub/rollout/planner: limits, failures, order of groups, soak and deadlines, wake-ups, and the end
//	Install     hub/fleet: decisions that are written one by one, by a controller that may stop,
//	            uninstall nobody, and a Placement that is replaced does not either
//	Upgrade     hub/rollout and hub/configure together: clusters that break while they soak, deadlines that pass, add-ons
//	            that come late or again, pods that take minutes, agents with clocks that are off or that feed
//	            nothing back, and decisions that are torn or replaced
//	Policies    package timed: pauses, approvals and windows, with internal/gate, hub/rollout and hub/configure, while
//	            the clocks of time zones move, jump and change their rules
//	Undo        package timed: contents that fail, and what becomes of them
//	Order       package timed: add-ons that depend on each other, come and go on a cluster
//
// The tests of the packages play a few thousand games; "make fleets" plays a million.
package fleets
