package neighbours

import (
	"context"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
	"github.com/spokelet/spokelet/test/sandbox"
)

const (
	relayName = "relay"
	// relaySecret has the certificate of the add-on's own signer, relayHubSecret that of the hub.
	relaySecret, relayHubSecret = "relay-relay.example.com-tunnel-client-cert", "relay-hub-kubeconfig"
)

//go:embed addons/relay.yaml
var relayYAML string

// relayObjects are those of add-on relay with an authority, which the unit in the subject of agents names.
func relayObjects(f *suite.Fleet, ca *sandbox.CA, unit string) ([]*unstructured.Unstructured, error) {
	server, key, err := ca.Server("relay.relay.svc", f.Hub().Address())
	if err != nil {
		return nil, fmt.Errorf("issuing the certificate of the hub part: %w", err)
	}
	in := base64.StdEncoding.EncodeToString
	return objectsOf(f, relayYAML, "AUTHORITY", in(ca.CertPEM), "SIGNINGKEY", in(ca.KeyPEM), "SERVER", in(server),
		"SERVINGKEY", in(key), "UNIT", unit, "HUBADDRESS", f.Hub().Address())
}

// applyRelay installs add-on relay with a new authority, and waits until its agent was at the hub part with a
// certificate of it.
func (p *play) applyRelay(ctx context.Context, s *suite.Session, unit string) error {
	ca, err := sandbox.NewCA(unit, nil)
	if err != nil {
		return err
	}
	objects, err := relayObjects(s.Fleet, ca, unit)
	if err != nil {
		return err
	}
	started := time.Now()
	if err := suite.Apply(ctx, s.Fleet.Hub(), objects); err != nil {
		return err
	}
	p.relay = ca
	err = cluster.Until(ctx, "a report of the agent with "+unit, func(ctx context.Context) error {
		var report corev1.ConfigMap
		key := client.ObjectKey{Namespace: clusterName, Name: relayName}
		if err := s.Fleet.Hub().Client.Get(ctx, key, &report); err != nil {
			return err
		}
		if heard := report.Data["unit"]; heard != unit {
			return fmt.Errorf("it has %q", heard)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.Note("the agent reported %.0f s after the authority was applied", time.Since(started).Seconds())
	return s.Fleet.WaitAddOn(ctx, clusterName, relayName)
}

// relayRuns installs add-on relay, and asks its webhook as somebody else.
func (p *play) relayRuns(ctx context.Context, s *suite.Session) error {
	if err := p.applyRelay(ctx, s, "first"); err != nil {
		return err
	}
	if err := p.relayCertificates(ctx, s.Fleet, "first"); err != nil {
		return err
	}
	forged := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterName, Name: "forged", Labels: map[string]string{"relay.example.com/report": "true"},
	}}
	err := s.Fleet.Hub().Client.Create(ctx, forged)
	if err == nil || !strings.Contains(err.Error(), "relay: kubernetes-admin is not the agent of this cluster") {
		return fmt.Errorf("the webhook of the add-on must refuse the report of an administrator: %w", err)
	}
	return nil
}

// relayCertificates checks the two certificates of the agent.
func (p *play) relayCertificates(ctx context.Context, f *suite.Fleet, unit string) error {
	own, err := certificateOf(ctx, f.Managed(), relaySecret)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AddCert(p.relay.Certificate)
	clients := x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := own.Verify(clients); err != nil {
		return fmt.Errorf("verifying the certificate of the add-on's own signer: %w", err)
	}
	if units := own.Subject.OrganizationalUnit; len(units) != 1 || units[0] != unit {
		return fmt.Errorf("the certificate of the add-on's own signer has units %v", units)
	}
	ofHub, err := certificateOf(ctx, f.Managed(), relayHubSecret)
	if err != nil {
		return err
	}
	if ofHub.Issuer.CommonName != "kubernetes" || !strings.Contains(ofHub.Subject.CommonName, ":addon:relay:agent:") {
		return fmt.Errorf("the certificate for the hub is of %s by %s", ofHub.Subject, ofHub.Issuer)
	}
	return nil
}

// relayChanges gives add-on relay another authority.
func (p *play) relayChanges(ctx context.Context, s *suite.Session) error {
	before, err := certificateOf(ctx, s.Fleet.Managed(), relayHubSecret)
	if err != nil {
		return err
	}
	if err := p.applyRelay(ctx, s, "second"); err != nil {
		return err
	}
	if err := p.relayCertificates(ctx, s.Fleet, "second"); err != nil {
		return err
	}
	after, err := certificateOf(ctx, s.Fleet.Managed(), relayHubSecret)
	if err != nil {
		return err
	}
	if before.SerialNumber.Cmp(after.SerialNumber) != 0 {
		return errors.New("the certificate for the hub was replaced, too")
	}
	return p.relayGoes(ctx, s)
}

// relayGoes removes add-on relay with its hub part.
func (p *play) relayGoes(ctx context.Context, s *suite.Session) error {
	objects, err := relayObjects(s.Fleet, p.relay, "second")
	if err != nil {
		return err
	}
	if err := suite.Delete(ctx, s.Fleet.Hub(), objects); err != nil {
		return err
	}
	return cluster.Until(ctx, "the credentials of the add-on to be gone", func(ctx context.Context) error {
		var errs []error
		for _, name := range []string{relaySecret, relayHubSecret, "relay-authority"} {
			errs = append(errs, suite.Gone(ctx, s.Fleet.Managed(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceAgentAddon, Name: name},
			}))
		}
		return errors.Join(errs...)
	})
}

// certificateOf returns the first certificate of a Secret of an add-on.
func certificateOf(ctx context.Context, c *cluster.Cluster, name string) (*x509.Certificate, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: name}
	if err := c.Client.Get(ctx, key, &secret); err != nil {
		return nil, fmt.Errorf("reading the credential of the add-on: %w", err)
	}
	block, _ := pem.Decode(secret.Data[csr.KeyCertificate])
	if block == nil {
		return nil, fmt.Errorf("secret %s has no certificate", name)
	}
	return x509.ParseCertificate(block.Bytes)
}
