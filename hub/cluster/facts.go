package cluster

import (
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/hub/cluster/meter"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// phase is the state of a cluster.
type phase int

const (
	// phaseGone means that the ManagedCluster does not exist.
	phaseGone phase = iota
	// phaseDeleting means that the ManagedCluster is being deleted.
	phaseDeleting
	// phaseRefused means that no cluster of this name can be accepted.
	phaseRefused
	// phaseAccepted means that an administrator accepts the cluster.
	phaseAccepted
	// phaseDenied means that the cluster was accepted once and is no longer.
	phaseDenied
	// phaseNew means that the cluster was never accepted.
	phaseNew
)

// facts are the inputs of a decision about one cluster.
type facts struct {
	name      string
	now       time.Time
	cluster   *clusterv1.ManagedCluster
	namespace *metav1.PartialObjectMetadata
	have      grants
	shared    map[string]*rbacv1.ClusterRole
	lease     *coordinationv1.Lease
	addons    []*addonv1beta1.ManagedClusterAddOn
	// works are the ManifestWorks of the namespace, metadata only; read only where needsWorks reports true.
	works []*workv1.ManifestWork
	// requests are the certificate requests with the label of the cluster; read only where the decision uses them.
	requests []*certificatesv1.CertificateSigningRequest
	// unacceptedLife is how long a cluster that was never accepted stays; zero means for ever.
	unacceptedLife time.Duration
	// labels are further labels of what the cluster gets.
	labels map[string]string
	// trust decides which certificate requests are approved, and their clusters accepted, without a person.
	trust approve.Trust
	// metered holds what the agent does more often than a healthy one.
	metered meter.Reading
	// live is the answer of the API server, which the caches may lag behind; nil when it was not asked.
	live *live
}

// live reports what exists according to the API server: a ManagedCluster, which is asked for only if the cache shows
// none, and an add-on or a ManifestWork in its namespace.
type live struct {
	cluster, addons, works bool
	err                    error
}

// plan is the decision about one cluster.
type plan struct {
	phase phase
	// cluster is the ManagedCluster with the desired finalizers, labels, taints and acceptance; nil when nothing changes.
	// It is written before the stages, and after them when the cluster is being deleted or is not accepted.
	cluster *clusterv1.ManagedCluster
	// approvedRequest is the certificate request that auto-accepts the cluster; nil when none does.
	approvedRequest *certificatesv1.CertificateSigningRequest
	// deniedAgain is set when a new cluster is denied because an earlier one of its name was.
	deniedAgain bool
	// abandoned is set when the cluster is removed because it was never accepted.
	abandoned bool
	// stages run one after the other; a stage begins only when all steps before it succeeded.
	stages [][]step
	// unknownAddOns are the add-ons whose Available condition becomes Unknown.
	unknownAddOns []addOnStatus
	// refused is why nothing can be done until a person acts.
	refused error
	// blocked says what must happen first; an event starts the next pass.
	blocked error
	// foreign is why the namespace of that name is not that of the cluster; nil when it is.
	foreign error
	// remaining says what a deletion still waits for; empty when nothing is left.
	remaining string
	// silent is true when the agent stopped renewing its lease.
	silent bool
	wake   time.Time
}

// step is one planned write.
type step = reconcile.Step[client.Object]

// addOnStatus is an add-on before and after its Available condition became Unknown.
type addOnStatus struct {
	before, after *addonv1beta1.ManagedClusterAddOn
}

// asked reports whether the API server said what is left.
func asked(f facts) bool { return f.live != nil && f.live.err == nil }

// notAsked returns why it is unknown what is left on the API server.
func notAsked(f facts) error {
	if f.live == nil {
		return errors.New("the server was not asked whether anything is left")
	}
	return fmt.Errorf("asking what is left in namespace %s: %w", f.name, f.live.err)
}
