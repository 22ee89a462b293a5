// Package agent is the composition root of the spoke side: one process beside (or for) each managed cluster that joins
// the cluster to its hub, keeps it a member, and serves its add-ons and works.
//
// The life of an agent:
//
//	start -> lead -> choose -> join  -> choose -> serve -> choose -> ...
//
// Config is everything that can be set, checked before any client exists. Of several agents for one cluster only the
// one that holds the lease LeaderLease does anything. It chooses its phase by looking at its credential: with a valid
// one it serves, else it joins with the bootstrap kubeconfig. A phase is one manager with its own clients; it ends when
// its ground is gone (a credential arrived, expired, or the bootstrap kubeconfig leads elsewhere), and the next choice
// follows in the same process. What goes wrong in a phase is logged and tried again, after a second at first and a
// minute at last. Only a configuration that cannot work ends the process, with the reason.
//
// While serving, a new certificate is put to use without a restart: the connections to the hub are cut and made anew
// (hub.go). A hub that is away stops nothing that does not need it; caches keep what they last saw and watches come
// back by themselves.
//
// Memory is part of the promise. Caches hold only what the reconcilers read, without managed fields; the work
// reconciler watches metadata alone; and the garbage collector runs at twice its usual pace unless GOGC says otherwise.
//
// serve.go lists everything that serves, in one function.
package agent
