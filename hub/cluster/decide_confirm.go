package cluster

import (
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// confirmation is what of the facts is read again without a cache before a plan is carried out. A cache may be behind
// by minutes, and by more for one kind than for another: a hub manager that starts may find the API server that has
// seen nothing for a while. The zero value is for a plan that gives nothing and takes nothing.
type confirmation struct {
	// cluster and namespace are those of the name, whether or not the cache has them.
	cluster, namespace bool
	// request is the certificate request that accepts the cluster; nil when none does.
	request *certificatesv1.CertificateSigningRequest
	// requests are all certificate requests of the cluster.
	requests bool
	// addons are the add-ons of the cluster.
	addons bool
}

// toConfirm returns what has to be confirmed before a plan is carried out. A cluster that stays as it is costs nothing.
func toConfirm(f facts, p plan) confirmation {
	writes := slices.ContainsFunc(p.stages, func(stage []step) bool { return len(stage) > 0 })
	c := confirmation{
		cluster: writes, request: p.approvedRequest, requests: p.abandoned, addons: losesLabel(f, p),
	}
	switch p.phase {
	case phaseNew:
		// Whether it was denied before is told by its namespace only.
		c.namespace = p.approvedRequest != nil || p.deniedAgain || p.abandoned
		c.cluster = c.cluster || c.namespace
	case phaseAccepted:
		// By now the namespace may be that of others. One that the cache lacks is created, which fails where it exists.
		c.namespace = writes && f.namespace != nil
	case phaseDeleting:
		// A denial that is not recorded when the cluster goes is forgotten.
		c.namespace = p.cluster != nil && denied(f.cluster)
	case phaseGone:
		// Of a cluster that vanished, the API server was asked before the decision.
		c.cluster = writes && f.live == nil
	case phaseDenied, phaseRefused:
	}
	return c
}

// losesLabel reports whether a cluster is about to lose the feature label of an add-on that the cache does not have.
// Placements may select clusters by these labels, so that other add-ons would go.
func losesLabel(f facts, p plan) bool {
	if p.cluster == nil {
		return false
	}
	known := map[string]bool{}
	for _, addon := range f.addons {
		known[featurePrefix+addon.Name] = true
	}
	for key := range f.cluster.Labels {
		if _, stays := p.cluster.Labels[key]; !stays && !known[key] && strings.HasPrefix(key, featurePrefix) {
			return true
		}
	}
	return false
}

// agrees reports whether two plans accept, deny, remove and write the same objects.
func (p plan) agrees(other plan) bool {
	return p.phase == other.phase && p.abandoned == other.abandoned && p.deniedAgain == other.deniedAgain &&
		(p.approvedRequest == nil) == (other.approvedRequest == nil) &&
		(p.blocked == nil) == (other.blocked == nil) && (p.cluster == nil) == (other.cluster == nil) &&
		slices.EqualFunc(p.stages, other.stages, func(a, b []step) bool { return slices.EqualFunc(a, b, sameWrite) })
}

// sameWrite reports whether two steps do the same to one object, though perhaps from another version of it, which the
// API server refuses.
func sameWrite(a, b step) bool {
	return a.Verb == b.Verb && reconcile.Describe(a.Object()) == reconcile.Describe(b.Object())
}
