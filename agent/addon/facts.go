package addon

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
)

// side is one of the two clusters with Secrets and leases of add-ons.
type side string

const (
	// sideAgent is the cluster where the agent runs.
	sideAgent side = "agent"
	// sideSpoke is the managed cluster, where the agent does not run on it.
	sideSpoke side = "spoke"
)

// facts are the inputs of the decision of a pass.
type facts struct {
	now time.Time
	// ahead is the time by which our clock is ahead of that of the hub, and hubKnown reports whether that is known.
	ahead    time.Duration
	hubKnown bool
	// name is the name of the add-on, cluster that of its cluster.
	name, cluster string
	// agent identifies this agent: its namespace and the Secret of its own credential.
	agent string
	// reserved are the names of Secrets that no add-on gets.
	reserved []string
	// split is set when the agent runs on another cluster than the managed one.
	split bool
	// hostedNamespaces are the namespaces in which hosted add-ons are served; empty means all.
	hostedNamespaces []string
	// addon is nil only if it certainly does not exist.
	addon *addonv1beta1.ManagedClusterAddOn
	// clusterUnknown is set while the hub reports the cluster as Unknown: then the hub writes the health of its add-ons.
	clusterUnknown bool
	// secrets are the Secrets that this agent created for the add-on.
	secrets []ownedSecret
	// lease is the last observation of the lease of the add-on agent.
	lease observation
	// snapshot is the observed state of an add-on agent that does not renew its lease; nextInspection is its next read.
	snapshot       snapshot
	nextInspection time.Time
	// workloads explains why workloads of the add-on are not ready; empty when the cause is unknown, nil before the first
	// inspection.
	workloads *string
	// grace is the time without a renewal after which the add-on becomes unavailable.
	grace time.Duration
	// driver is the driver of kubeClient registrations.
	driver string
	// expirationSeconds is the lifetime in every request.
	expirationSeconds *int32
	// tokenSeconds is the lifetime in every request for a token; zero means token.DefaultExpirationSeconds.
	tokenSeconds int64
}

// hubNow is the time of the pass by the clock of the hub.
func (f facts) hubNow() time.Time { return f.now.Add(-f.ahead) }

// maxTokenSeconds is the longest lifetime of a token that API servers let ask for.
const maxTokenSeconds = 1 << 32

// tokenLife is the lifetime for which tokens are asked.
func (f facts) tokenLife() time.Duration {
	return time.Duration(min(cmp.Or(f.tokenSeconds, token.DefaultExpirationSeconds), maxTokenSeconds)) * time.Second
}

// toLocal converts a time by the clock of the hub to our clock.
func (f facts) toLocal(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(f.ahead)
}

// ownedSecret is a Secret that this agent created.
type ownedSecret struct {
	side    side
	key     types.NamespacedName
	uid     types.UID
	pending bool
	// both is set if the Secret was found on both sides, which are the same cluster then: an agent that reaches the
	// cluster that it runs on by a kubeconfig.
	both bool
}

// on reports whether the Secret is on a side.
func (s ownedSecret) on(one side) bool { return s.both || s.side == one }

// stored is the credential Secret of one registration as last read; nil when there is none.
type stored struct {
	secret *corev1.Secret
	renew  bool
}

// foreignError is returned for a Secret with the name of ours that has another owner.
type foreignError struct {
	message string
	// until are the targets to watch: when one of them changes, the Secret may become ours.
	until []target
}

// Error names the owner of the Secret and the remedy.
func (e foreignError) Error() string { return e.message }

// leaseOf returns the observed lease; nil when it is absent.
func leaseOf(s observation) *coordinationv1.Lease {
	l, _ := s.object.(*coordinationv1.Lease)
	return l
}

// snapshot is the observed state of the namespace where the add-on agent should run. What could not be read is unknown.
type snapshot struct {
	// taken is set after the first inspection.
	taken bool
	// namespace is the state of the namespace.
	namespace presence
	// workloads are its Deployments and DaemonSets, if workloadsKnown.
	workloads      []workload
	workloadsKnown bool
	// pods are its pods, if podsKnown.
	pods      []pod
	podsKnown bool
}

// presence is the state of a namespace.
type presence string

const (
	presenceUnknown presence = ""
	presenceThere   presence = "there"
	presenceEnding  presence = "ending"
	presenceMissing presence = "missing"
)

// workload is a Deployment or DaemonSet.
type workload struct {
	// kind and name identify it.
	kind, name string
	// own is set when it bears the name of the add-on.
	own bool
	// wanted is the desired number of pods.
	wanted int32
	// failure explains why it has no pods, if its conditions do.
	failure string
}

// pod is the health of a pod.
type pod struct {
	name string
	// own is set when it bears the name of the add-on.
	own bool
	// trouble explains what keeps it from running; empty when it runs.
	trouble string
	// ready is set when all its containers are ready.
	ready bool
	// ended is set when it failed for good; such pods may remain after others have replaced them.
	ended bool
}

// observation is the last observed state of a target.
type observation struct {
	// known reports whether the target, or its absence, was observed and the watch works.
	known bool
	// cause is the error of the watch because of which the target is unknown; nil when there is none.
	cause error
	// refused is cause if the agent may not watch the target and never could, or could not for lease.AddonGrace; nil
	// otherwise.
	refused error
	// object is the target; nil when it is absent.
	object client.Object
	// skew is the difference of our clock to the one that renews a Lease; nil when it is unknown.
	skew *skew
}

// renewal is one renewal of a lease: its renewTime, and the time of its event by our clock.
type renewal struct{ carried, seen time.Time }

// skew is the difference between two clocks.
type skew struct {
	// seen is the time of the measurement, by our clock.
	seen time.Time
	// behind is the time by which the other clock is behind ours; negative when it is ahead.
	behind time.Duration
}

// target is one object that is watched by its name.
type target struct {
	side            side
	kind            targetKind
	namespace, name string
}

// targetKind is the kind of a target. Of all but Leases, only the metadata is read.
type targetKind string

const (
	kindLease     targetKind = "Lease"
	kindNamespace targetKind = "Namespace"
	kindSecret    targetKind = "Secret"
)

// String names the target in logs.
func (t target) String() string {
	if t.namespace == "" {
		return strings.ToLower(string(t.kind)) + " " + t.name
	}
	return fmt.Sprintf("%s %s/%s", strings.ToLower(string(t.kind)), t.namespace, t.name)
}

// removal selects the Secrets to delete.
type removal string

const (
	// removeNone keeps all.
	removeNone removal = "none"
	// removeStale deletes those that no registration needs, once all registrations are served.
	removeStale removal = "stale"
	// removeAll deletes all.
	removeAll removal = "all"
)

// place is the place where an add-on agent runs.
type place struct {
	side      side
	namespace string
	// hosting is the hosting cluster of the add-on; empty for none.
	hosting string
	// problem explains why namespace is not valid; empty when it is.
	problem string
}

// lease is the lease of the add-on agent as a target.
func (p place) lease(addon string) target {
	return target{side: p.side, kind: kindLease, namespace: p.namespace, name: addon}
}

// plan is the result of the decision of a pass.
type plan struct {
	place place
	// declare is the driver to write to the registrations; empty leaves them.
	declare string
	// serve are the credentials to get.
	serve []registration
	// refused are the results of the registrations that cannot be served.
	refused []result
	// waits is set when some registrations need the hub to act first.
	waits bool
	// remove selects the Secrets to delete.
	remove removal
	// watch are the targets to watch for the add-on.
	watch []target
	// available is the condition to write; nil leaves it.
	available *metav1.Condition
	// explain is set when the likely cause is appended to the message of available.
	explain bool
	// wake is the time at which the health must be judged again.
	wake time.Time
}

// registration is one credential to get.
type registration struct {
	// request is the request for the certificate; unused if account is set.
	request csr.Request
	// account is the ServiceAccount of the token; nil for a certificate.
	account *account
	secret  types.NamespacedName
	// kubeconfig is set when the Secret has a kubeconfig for the hub.
	kubeconfig bool
}

// kind is the type of the condition of the credential.
func (reg registration) kind() string {
	if reg.account != nil {
		return token.ConditionRefreshed
	}
	return csr.ConditionRotated
}

// account is the ServiceAccount of an add-on on the hub.
type account struct {
	// user is its user name.
	user string
	// uid is the UID that the hub reported; empty while it has not.
	uid types.UID
	// missing explains why there is no uid.
	missing string
}

// result is the result of one registration.
type result struct {
	// kind is the type of its condition.
	kind string
	// signer is the signer of the certificate; empty for a token.
	signer string
	// kubeconfig is set for a credential for the hub.
	kubeconfig bool
	// condition is the condition to write; nil leaves it.
	condition *metav1.Condition
	// served is set when a valid credential is in its Secret.
	served bool
	// missing is the namespace without which the Secret cannot be created; empty otherwise.
	missing string
	// waits explains what the credential needs from the hub first; empty otherwise.
	waits string
	// awaited are the names of the request objects whose change needs the next pass.
	awaited []string
	// until are the targets to watch while the Secret has another owner.
	until []target
	// life is that of the certificate in its Secret; zero where there is none. unread is set where that is not known.
	life   causes.Life
	unread bool
	// deadline is the latest time of the next attempt while the credential in use is about to expire; zero otherwise.
	deadline time.Time
	outcome  reconcile.Outcome
}

// newResult returns the empty result of a registration.
func newResult(reg registration) result {
	return result{kind: reg.kind(), signer: reg.request.Signer, kubeconfig: reg.kubeconfig}
}

// withFailure returns the result with a condition that explains why there is no credential.
func (res result) withFailure(why string) result {
	res.condition = issue.NotStored(why)
	if res.kind == token.ConditionRefreshed {
		res.condition = token.CreationFailed(why)
	}
	return res
}

// belongsToOthers returns the result for a Secret of another owner. It is retried only after a change.
func (res result) belongsToOthers(foreign foreignError) result {
	res.served, res.deadline = false, time.Time{}
	res.until, res.outcome = foreign.until, reconcile.Waiting(time.Time{})
	return res.withFailure(foreign.Error())
}

// failed returns the result after an error: a credential that could not be stored is not served.
func (res result) failed(err error) result {
	if err == nil {
		return res
	}
	if foreign := (foreignError{}); errors.As(err, &foreign) {
		return res.belongsToOthers(foreign)
	}
	res.served = false
	if res.missing == "" {
		res.condition = nil
		if !reconcile.IsLostRace(err) {
			res = res.withFailure(err.Error())
		}
	}
	res.outcome = res.outcome.And(reconcile.FromError(err))
	return res
}
