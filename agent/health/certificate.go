package health

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

// A kubelet does not verify the certificate of a probe. The certificate outlives the process, and is valid for a client
// whose clock is behind.
const (
	certificateLife = 10 * 365 * 24 * time.Hour
	certificateSlip = 24 * time.Hour
	rsaBits         = 2048
)

// serverConfig returns the versions and cipher suites that the options allow, with a self-signed certificate that is
// made now.
func serverConfig(options command.TLS, now clock.PassiveClock) (*tls.Config, error) {
	certificate, err := selfSigned(now.Now(), onlyRSA(options.CipherSuites))
	if err != nil {
		return nil, fmt.Errorf("making the certificate of the health endpoint: %w", err)
	}
	// HTTP/2 requires cipher suites that the options may not allow.
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"},
	}
	if err := options.Apply(config); err != nil {
		return nil, fmt.Errorf("reading the flags of TLS: %w", err)
	}
	return config, nil
}

// onlyRSA reports whether all cipher suites of TLS 1.2 need an RSA key.
func onlyRSA(suites []string) bool {
	byKey := func(kind string) bool {
		return slices.ContainsFunc(suites, func(name string) bool { return strings.Contains(name, kind) })
	}
	return byKey("_RSA_") && !byKey("_ECDSA_")
}

// selfSigned returns a new key with a certificate that it signed itself.
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
