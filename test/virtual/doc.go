// Package virtual runs a fleet in one process and in virtual time: the hub manager, the agents of all clusters, and an
// API server in memory (package apiserver) for the hub and for each cluster. Programs are started as their main
// functions start them, with the transport to the API servers replaced; nothing of them is replaced besides.
//
// A World must be made and run in a bubble of testing/synctest: its clock stands still while any program has something
// to do, and jumps to the next timer when none has. So a day of a fleet takes as long as what happens in it.
//
//   - world.go has the hub and the clusters, program.go their programs, which can be stopped and started, and wire.go
//     the way from a program to an API server, which can be cut, and on which answers can be lies (package proxy).
//   - controllers.go plays what else lives in a real fleet: the signer of certificates, and what runs Deployments and
//     Jobs. scheduler.go plays another program that schedules Placements, which is ended in the middle of what it
//     writes.
//   - objects.go writes what people write: add-ons, placements, labels.
//   - judge.go watches the API servers and knows what must never happen; calm.go compares everything when all is quiet,
//     and quiet.go then looks for writes that nothing asks for.
//   - day.go draws what happens in a day, of which happenings.go and happenings_hub.go have the kinds.
//     happenings_behind.go shows the hub manager single kinds as they were in the middle of a change, while it runs or
//     when it starts.
//   - works.go plays a day of works that people write: each cluster plays scenarios one after the other (scenarios.go
//     and the files beside it). member.go has clusters with hosted agents, two hubs, and other settings, userworks.go
//     the works and a model of what must be on a cluster, faults.go what API servers and proxies do wrong, and
//     judge_works.go what must never happen.
//   - ways.go leads a hub without clusters' agents to one state by different routes; ways_versions.go has hubs that
//     serve the add-on API in one version or both, and writes in either, ways_library.go a program of an author in
//     place of an AddOnTemplate, and ways_state.go reads and compares states.
//
// The seed of a Day repeats what happens and when. In which order programs take turns at one instant is up to the
// scheduler of Go, so that a history is not repeated to the letter.
package virtual
