package agent

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/internal/command"
)

// The certificate of the health endpoint: nobody verifies it, so it has to hold as long as the process lives, and to be
// good for a clock that is behind.
const (
	certificateLife = 10 * 365 * 24 * time.Hour
	certificateSlip = 24 * time.Hour
	rsaBits         = 2048
)

// tlsOptions are the versions and cipher suites that the flags allow, which OCM's agents have too.
func (c *Config) tlsOptions() command.TLS {
	return command.TLS{MinVersion: c.TLSMinVersion, CipherSuites: c.TLSCipherSuites}
}

// serverTLS returns what is served over TLS: the versions and cipher suites of the configuration, with a certificate
// that is made now and that nobody but the process has signed.
func (c *Config) serverTLS(now clock.PassiveClock) (*tls.Config, error) {
	certificate, err := selfSigned(now.Now(), onlyRSA(c.TLSCipherSuites))
	if err != nil {
		return nil, fmt.Errorf("making the certificate of the health endpoint: %w", err)
	}
	// Without HTTP/2, which insists on cipher suites that may not be among those that are allowed.
	served := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"},
	}
	if err := c.tlsOptions().Apply(served); err != nil {
		return nil, fmt.Errorf("reading the flags of TLS: %w", err)
	}
	return served, nil
}

// onlyRSA reports whether a client of TLS 1.2 can only agree on a suite with a server that has an RSA key.
func onlyRSA(suites []string) bool {
	byKey := func(kind string) bool {
		return slices.ContainsFunc(suites, func(name string) bool { return strings.Contains(name, kind) })
	}
	return byKey("_RSA_") && !byKey("_ECDSA_")
}

// selfSigned makes a key and a certificate for it.
func selfSigned(now time.Time, withRSA bool) (tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "spokelet"},
		DNSNames:  []string{"localhost"},
		NotBefore: now.Add(-certificateSlip), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	var key crypto.Signer
	var err error
	if withRSA {
		template.KeyUsage |= x509.KeyUsageKeyEncipherment
		key, err = rsa.GenerateKey(rand.Reader, rsaBits)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return tls.Certificate{}, err
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
}
