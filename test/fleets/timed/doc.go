// Package timed plays policies, maintenance windows and hub managers against a clock that really moves, and checks what
// must hold of them after every step.
//
// A play is one add-on on a few clusters, some nights long: one in which a clock jumps, a leap day, a zone that changes
// its rules, a freeze. People pause and resume, approve and take back, edit contents and windows. Clusters change their
// labels and claims, fail, time out, leave and come back. The hub manager looks when something changed and at the
// instants that it named, and at no other; it is restarted, or two of them overlap with caches of different age.
//
//	calendar.go   what the clocks of the zones show, minute by minute, and when the occurrences of a schedule are
//	draw.go       the objects that people write, as the judge understands them
//	world.go      a play: what there is, and its steps
//	end.go        how a play ends
//	people.go     what people and clusters do
//	manager.go    a hub manager: the decisions of hub/rollout, hub/configure and internal/gate with a cache of its own
//	verdict.go    what the judge says of a cluster: whether it may begin, why not, and when it may
//	judge.go      the rules
//	undo.go       contents that fail, with the rules of what is undone
//	order.go      a play of its own: add-ons that depend on each other, on one cluster
//
// The judge shares no code with the decisions: it reads the clock of each minute of the time of a play, marks those
// that an occurrence covers, and looks for the first one that is free. What the hub manager alone remembers is in no
// rule: since when it saw that an agent is not well, and how an add-on did that was deleted.
package timed
