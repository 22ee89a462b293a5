package addon

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/token"
)

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
