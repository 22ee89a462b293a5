// Package agent is the composition root of the spoke side: one process beside (or for) each managed cluster that joins
// the cluster to its hub, keeps it a member, and serves its add-ons and works.
//
// The life of an agent:
//
//	start -> lead -> choose -> join  -> choose -> serve -> choose -> ...
//
// Config is everything that can be set, checked before any client exists. How the program is called says whether it does
// registration, works or both (call.go). Of several agents for one cluster only the one that holds the Leases of its
// duties does anything; they are those of OCM's agents, so that ours and theirs wait for each other, too (leader.go).
//
// The agent chooses its phase by looking at its bootstrap kubeconfigs and at its stored credential: with a valid one it
// serves, else it joins with the bootstrap kubeconfig, with neither it waits. A phase is one manager with its own
// clients; it ends when its ground is gone, and the next choice follows in the same process. What goes wrong in a phase
// is told and tried again, after a second at first and a minute at last. Only flags that can never work end the process,
// with the reason.
//
// What ends a phase:
//
//   - lookout.go: a bootstrap kubeconfig that leads elsewhere, or the kubeconfig of a hosted cluster that changed. Both
//     are watched, as Secrets or as files (files.go). New credentials in a bootstrap kubeconfig do not end serving, nor
//     does one that is gone or broken: what is not known takes nothing away.
//   - keeper.go: the certificate expired. A new one is put to use without a restart: the connections to the hub are cut
//     and made anew (hub.go).
//   - answers.go: the hub answers nothing but 401 for a while. The agent joins anew, the stored credential stays until
//     its successor is there, and is tried now and then meanwhile (joining.go).
//   - hubs.go, silence.go: of several hubs (feature gate MultipleHubs) this one denied the cluster or fell silent.
//
// A hub that is away stops nothing that does not need it; caches keep what they last saw and watches come back by
// themselves. An agent that starts meanwhile looks after its works by the copies in its directory, in whatever phase
// (works.go). Before the hub has accepted the cluster the serving phase looks at it now and then, and watches the rest.
//
// A process that does works alone never joins: it serves with the files of the credential that a registration agent
// keeps, or waits for them (member.go).
//
// That a hub stopped answering is told once, with its cause: in the log and in /readyz, which does not fail for it.
// Errors that it explains stay out of the log (reach.go, logging.go).
//
// What the agent is doing stands in words in /healthz, /readyz and the log, also what a joining waits for, which nobody
// may write into the ManagedCluster yet (report.go). mirror.go shows the stored credential as files for others.
//
// Memory is part of the promise. Caches hold only what the reconcilers read, without managed fields; the work
// reconciler watches metadata alone; the garbage collector runs at twice its usual pace unless GOGC says otherwise; and
// when a burst of work is over, memory that rest does not need is given back (memory.go).
//
// serve.go lists everything that serves, in one function.
package agent
