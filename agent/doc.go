// Package agent is the composition root of the spoke side: one process beside (or for) each managed cluster that joins
// the cluster to its hub, keeps it a member, and serves its add-ons and works.
//
// The life of an agent:
//
//	start -> lead -> choose -> join  -> choose -> serve -> choose -> ...
//
// Config is everything that can be set, and is validated before any client exists. The name of the program or its first
// argument selects registration, works or both (call.go). Of several agents for one cluster only the one that holds the
// Leases of its duties acts (package leader).
//
// The agent chooses its phase by its bootstrap kubeconfigs (package bootstrap) and its stored credential: with a valid
// credential it serves, else it joins with the bootstrap kubeconfig, with neither it waits (phases.go). A phase is one
// manager with its own clients. When a phase ends, the next choice follows in the same process. A phase that fails is
// reported and retried, after a second at first and a minute at last. Only flags that can never work end the process.
//
// Reasons for the end of a phase:
//
//   - A bootstrap kubeconfig leads to another hub, or the kubeconfig of a hosted cluster changed (bootstrap.Watcher).
//     Serving goes on when a bootstrap kubeconfig has other credentials, is missing or broken.
//   - The certificate expired (keeper.go). A new certificate needs no restart: the agent closes the connections to the
//     hub and reconnects (package hubconn).
//   - The hub responds with nothing but 401 for a while (hubconn.Responses). The agent joins again. The stored
//     credential stays until it is replaced, and is tried now and then meanwhile (joining.go).
//   - Of several hubs (feature gate MultipleHubs) this one denied the cluster, or has not responded for too long.
//
// An outage of the hub stops nothing that does not need the hub; caches keep their content, and watches resume. An
// agent that starts during an outage keeps its works by their offline copies, in whatever phase (works.go). Before the
// hub has accepted the cluster the serving phase polls it.
//
// A process that does works alone never joins: it serves with the files of the credential that a registration agent
// keeps, or waits for them (member.go).
//
// An outage of the hub is reported once, with its cause: in the log and in /readyz, which does not fail for it (package
// health). Errors that follow from the outage stay out of the log (logging.go). /healthz, /readyz and the log also
// say what the agent is doing, and what joining waits for (report.go): nobody may write that into the ManagedCluster
// yet.
//
// The memory of an agent is bounded. Caches hold only the objects that the reconcilers read, without managed fields;
// the work reconciler watches metadata alone; the garbage collector runs at twice its usual pace unless GOGC is set;
// and free heap goes back to the operating system after a burst of work (package memory).
//
// serve.go lists all reconcilers in one function.
package agent
