package cluster

import (
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Reconciler writes the status of the ManagedCluster of this agent and controls its heartbeat.
type Reconciler struct {
	// Hub is the hub; its cache watches the ManagedCluster named Cluster, with the transform StripManagedCluster, and
	// needs to hold no other.
	Hub cluster.Cluster
	// Spoke is the managed cluster; its cache watches Nodes, with the transform StripNode. The reconciler watches claims
	// and namespaces itself.
	Spoke cluster.Cluster
	// Cluster is the name of the cluster and of its namespace on the hub.
	Cluster string
	// HubURL is the address of the hub in the kubeconfig; its hash is in the label of the namespaces that the hub manages.
	HubURL string
	// NoClaims disables ClusterClaims, Properties enables ClusterProperties (feature gates ClusterClaim and
	// ClusterProperty). With neither of them the claims of the ManagedCluster stay unchanged.
	NoClaims, Properties bool
	// Claims selects the claims that are reported.
	Claims ClaimRules
	// HostingCluster is the value that the reserved claim on the cluster of the agent is kept at, empty for none; nil
	// leaves the claim alone.
	HostingCluster *string
	// Period is the longest time between two passes; zero means no limit. It is a safety net: a pass in which nothing
	// changed reads caches and sends nothing, and probes do not depend on the period (docs/adr/0006).
	Period time.Duration
	// Health probes the API server of the spoke.
	Health *Health
	// Heartbeat is controlled by this reconciler; SetupWithManager adds it to the manager.
	Heartbeat *Heartbeat
	// OnAbsent is called in each pass with why the agent has no ManagedCluster to report to, and with an empty text when
	// it has one. Optional; it must not block.
	OnAbsent func(text string)
	// Clock is the clock of a pass.
	Clock clock.PassiveClock

	// claims and properties are nil when they are disabled.
	claims, properties *optionalKind
	namespaces         *collection[namespace]
	// label is the key of the label of managed namespaces.
	label  string
	spaces dynamic.ResourceInterface
	// hosting is the resource of the claim on the cluster of the agent.
	hosting dynamic.ResourceInterface
	events  events
	trigger trigger
	// summed is when sums over the nodes were written last; only passes use it, one at a time.
	summed time.Time
}
