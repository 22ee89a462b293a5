package agent

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// The certificate of the health endpoint: nobody verifies it, so it has to hold as long as the process lives, and to be
// good for a clock that is behind.
const (
	certificateLife = 10 * 365 * 24 * time.Hour
	certificateSlip = 24 * time.Hour
	rsaBits         = 2048
)

// tlsVersions are the versions that may be required, by the names that OCM uses.
func tlsVersions() map[string]uint16 {
	return map[string]uint16{"VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13}
}

// tlsVersion returns the version of a name; the empty one is TLS 1.2.
func tlsVersion(name string) (uint16, error) {
	if name == "" {
		return tls.VersionTLS12, nil
	}
	version, ok := tlsVersions()[name]
	if !ok {
		return 0, fmt.Errorf("%q is no version that is served, these are %s", name,
			strings.Join(slices.Sorted(maps.Keys(tlsVersions())), ", "))
	}
	return version, nil
}

// cipherSuites returns the suites of names, nil for none.
func cipherSuites(names []string) ([]uint16, error) {
	known := map[string]uint16{}
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		known[suite.Name] = suite.ID
	}
	var ids []uint16
	for _, name := range names {
		id, ok := known[strings.TrimSpace(name)]
		if !ok {
			return nil, fmt.Errorf("%q is no cipher suite that is served, these are %s", name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// serverTLS returns what is served over TLS: the versions and cipher suites of the configuration, with a certificate
// that is made now and that nobody but the process has signed.
func (c *Config) serverTLS(now clock.PassiveClock) (*tls.Config, error) {
	version, err := tlsVersion(c.TLSMinVersion)
	if err != nil {
		return nil, fmt.Errorf("--tls-min-version: %w", err)
	}
	suites, err := cipherSuites(c.TLSCipherSuites)
	if err != nil {
		return nil, fmt.Errorf("--tls-cipher-suites: %w", err)
	}
	certificate, err := selfSigned(now.Now(), onlyRSA(c.TLSCipherSuites))
	if err != nil {
		return nil, fmt.Errorf("making the certificate of the health endpoint: %w", err)
	}
	// Without HTTP/2, which insists on cipher suites that may not be among those that are allowed.
	return &tls.Config{
		MinVersion: version, CipherSuites: suites, Certificates: []tls.Certificate{certificate},
		NextProtos: []string{"http/1.1"},
	}, nil
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
	if withRSA {
		key, err := rsa.GenerateKey(rand.Reader, rsaBits)
		if err != nil {
			return tls.Certificate{}, err
		}
		template.KeyUsage |= x509.KeyUsageKeyEncipherment
		raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
}
