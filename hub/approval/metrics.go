package approval

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	labelKind = "kind"
	labelRule = "rule"

	// kindCluster and kindAddon are the kinds of credentials that requests ask for.
	kindCluster = "cluster"
	kindAddon   = "addon"
)

// counters count requests by result. The zero value counts, but is registered nowhere.
type counters struct {
	once                      sync.Once
	refused, approved, signed *prometheus.CounterVec
}

// register registers the counters; nil registers none. Several hub managers in one process share them.
func (c *counters) register(registerer prometheus.Registerer) error {
	c.make()
	for _, vector := range []**prometheus.CounterVec{&c.refused, &c.approved, &c.signed} {
		var err error
		if *vector, err = reconcile.RegisterMetric(registerer, *vector); err != nil {
			return fmt.Errorf("registering the counters of certificate requests: %w", err)
		}
	}
	return nil
}

func (c *counters) make() {
	c.once.Do(func() {
		vector := func(name, help string, labels ...string) *prometheus.CounterVec {
			return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		}
		c.refused = vector("spokelet_csr_refused_total", "Certificate requests that were left alone, by the rule that they "+
			"break or wait for: the reason of the Event on the request. Once per request and rule.", labelKind, labelRule)
		c.approved = vector("spokelet_csr_approved_total", "Certificate requests that were approved.", labelKind)
		c.signed = vector("spokelet_csr_signed_total", "Certificate requests that were signed for a custom signer.",
			labelKind)
	})
}

func (c *counters) countRefused(csr *certificatesv1.CertificateSigningRequest, rule string) {
	c.make()
	c.refused.WithLabelValues(kindOf(csr), rule).Inc()
}

func (c *counters) countApproved(csr *certificatesv1.CertificateSigningRequest) {
	c.make()
	c.approved.WithLabelValues(kindOf(csr)).Inc()
}

func (c *counters) countSigned(csr *certificatesv1.CertificateSigningRequest) {
	c.make()
	c.signed.WithLabelValues(kindOf(csr)).Inc()
}

// kindOf returns the kind of credential that a request asks for.
func kindOf(csr *certificatesv1.CertificateSigningRequest) string {
	if _, _, addonLabel := csrs.Subject(csr); addonLabel {
		return kindAddon
	}
	return kindCluster
}
