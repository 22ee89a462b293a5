package addon

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/expiry"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/watch"
)

// Reconciler gives the add-ons of a cluster their credentials and reports their health to the hub.
type Reconciler struct {
	memory

	// Hub is the hub, with the cluster's own credential. Its cache must hold the ManagedClusterAddOns in the namespace
	// of this cluster, and its ManagedCluster.
	Hub cluster.Cluster
	// Wire is the version of the add-on API that the hub serves, from addonapi.Detect.
	Wire addonapi.Wire
	// Agent is the cluster where the agent and hosted add-ons run. Its cache must hold the Secrets of Namespace and those
	// that SecretSelector selects in all other namespaces.
	Agent cluster.Cluster
	// Spoke is the managed cluster; nil means that it is Agent. Its cache must hold the Secrets that SecretSelector
	// selects.
	Spoke cluster.Cluster
	// HostedNamespaces are the namespaces of Agent in which hosted add-ons are served where Spoke is another cluster;
	// empty means all.
	HostedNamespaces []string
	// Namespace is the agent's namespace.
	Namespace string
	// SecretName is the Secret in Namespace with the agent's own credential; empty means names.SecretHub.
	SecretName string
	// Reserved are names of Secrets with other credentials of the agent: no add-on gets a Secret of such a name.
	Reserved []string
	// Cluster is the name of the managed cluster.
	Cluster string
	// User is the user name of the agent on the hub: requests of other users do not count against its limit.
	User string
	// Server is the hub that credentials are for.
	Server issue.HubServer
	// Driver is the driver of kubeClient registrations: DriverCSR or token.Driver; empty means DriverCSR. Registrations
	// with a custom signer get certificates with both.
	Driver string
	// ExpirationSeconds is the requested lifetime of certificates; nil leaves it to the signers.
	ExpirationSeconds *int32
	// TokenExpirationSeconds is the requested lifetime of tokens; zero means token.DefaultExpirationSeconds, and less than
	// token.MinExpirationSeconds is an error.
	TokenExpirationSeconds int64
	// LeaseGrace is the time without a renewal after which an add-on becomes unavailable; zero means lease.AddonGrace.
	LeaseGrace time.Duration
	// Ends is told when the certificates of add-ons end. Optional.
	Ends *expiry.Ends
	// Clock is the clock of the agent; nil means the real clock.
	Clock clock.PassiveClock
	// Ahead returns the time by which Clock is ahead of the clock of the hub, and whether that is known; nil means that it
	// is not. Credentials are judged by the clock of the hub, leases by Clock.
	Ahead func() (time.Duration, bool)

	addons addonapi.Client
	sides  map[side]cluster.Cluster
	watch  *watcher
	// requests watches the request objects that wait for their certificates.
	requests *watch.Named
	// reads has the objects of namespaces for inspections.
	reads namespaceReads
}

// SecretSelector selects the Secrets that a Reconciler for the cluster creates, and no others.
func SecretSelector(cluster string) labels.Selector {
	marked, err := labels.NewRequirement(names.LabelCredential, selection.Exists, nil)
	if err != nil { // only for a malformed label, and this one is a constant
		return labels.Nothing()
	}
	return labels.SelectorFromSet(labels.Set{names.LabelClusterName: cluster}).Add(*marked)
}
