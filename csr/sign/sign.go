package sign

import (
	"cmp"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/csr"
)

const (
	// pemCertificate is the PEM type of a certificate.
	pemCertificate = "CERTIFICATE"
	// signedLifetime is how long a certificate of a custom signer is good at most, if its add-on states nothing else.
	signedLifetime = 24 * time.Hour
	// backdating lets a certificate start in the past, for agents whose clock is behind.
	backdating = 5 * time.Minute
	// serialBytes is the length of a random serial number.
	serialBytes = 16
)

// Authority is the CA of a custom signer.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// Issuance is one certificate to be signed.
type Issuance struct {
	// CSR gives the public key and the wished lifetime; nothing else of it reaches the certificate.
	CSR *certificatesv1.CertificateSigningRequest
	// Expected gives the subject and the DNS names: the Expected of a Verdict on this request.
	Expected csr.Request
	// Lifetime is the maximum lifetime of the certificate; zero means 24 hours.
	Lifetime time.Duration
	// Limit is the maximum lifetime of any certificate; zero limits none.
	Limit time.Duration
	// Now is the instant of signing.
	Now time.Time
	// Random gives the serial number.
	Random io.Reader
}

// ReadAuthority reads the CA from a Secret of type kubernetes.io/tls. The error names the key of the Secret that is
// wrong and its expected content.
func ReadAuthority(secret *corev1.Secret) (Authority, error) {
	authority, err := parseAuthority(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return Authority{}, fmt.Errorf("CA Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return authority, nil
}

// parseAuthority reads a CA from its certificate, the first one in certPEM, and its private key, which may be RSA,
// ECDSA or Ed25519 in PKCS#8, PKCS#1 or SEC 1.
func parseAuthority(certPEM, keyPEM []byte) (Authority, error) {
	certificate, err := parseCACertificate(certPEM)
	if err != nil {
		return Authority{}, fmt.Errorf("%s: %w", corev1.TLSCertKey, err)
	}
	key, err := parseCAKey(keyPEM)
	if err != nil {
		return Authority{}, fmt.Errorf("%s: %w", corev1.TLSPrivateKeyKey, err)
	}
	public, ok := key.Public().(interface {
		Equal(other crypto.PublicKey) bool
	})
	if !ok || !public.Equal(certificate.PublicKey) {
		return Authority{}, fmt.Errorf("%s is not the private key of the certificate in %s",
			corev1.TLSPrivateKeyKey, corev1.TLSCertKey)
	}
	return Authority{certificate: certificate, key: key}, nil
}

// Sign issues a client certificate and returns it as PEM. Its subject and names are the expected ones, not those of
// the request; it is valid for client authentication only, for the lifetime of the issuance or the shorter one of
// the request, and never longer than the CA. The error describes the problem with the CA or the request.
func (a Authority) Sign(i Issuance) ([]byte, error) {
	if a.certificate == nil || a.key == nil {
		return nil, errors.New("there is no CA to sign with")
	}
	parsed, err := csr.ParseStrictly(i.CSR.Spec.Request)
	if err != nil {
		return nil, err
	}
	if complaint := csr.CheckKey(parsed); complaint != "" {
		return nil, fmt.Errorf("request %s cannot be signed: %s", i.CSR.Name, complaint)
	}
	notBefore, notAfter, err := a.validity(i)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial(i.Random)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject: pkix.Name{
			CommonName:         i.Expected.User,
			Organization:       slices.Clone(i.Expected.Groups),
			OrganizationalUnit: slices.Clone(i.Expected.OrganizationalUnits),
		},
		DNSNames:              slices.Clone(i.Expected.DNSNames),
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(i.Random, template, a.certificate, parsed.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate for %s: %w", i.Expected.User, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der}), nil
}

// validity returns from when to when the certificate is good.
func (a Authority) validity(i Issuance) (from, to time.Time, err error) {
	ca := a.certificate
	switch {
	case i.Now.After(ca.NotAfter):
		return from, to, fmt.Errorf("the CA certificate expired at %s: replace it", ca.NotAfter.UTC().Format(time.RFC3339))
	case i.Now.Before(ca.NotBefore):
		return from, to, fmt.Errorf("the CA certificate is not valid before %s: check the clocks",
			ca.NotBefore.UTC().Format(time.RFC3339))
	}
	lifetime := cmp.Or(i.Lifetime, signedLifetime)
	if i.Limit > 0 {
		lifetime = min(lifetime, i.Limit)
	}
	if wished := i.CSR.Spec.ExpirationSeconds; wished != nil && *wished > 0 {
		lifetime = min(lifetime, time.Duration(*wished)*time.Second)
	}
	from, to = i.Now.Add(-backdating), i.Now.Add(lifetime)
	if from.Before(ca.NotBefore) {
		from = ca.NotBefore
	}
	if to.After(ca.NotAfter) {
		to = ca.NotAfter
	}
	return from, to, nil
}

// parseCACertificate decodes the first certificate and checks that it may sign others.
func parseCACertificate(certPEM []byte) (*x509.Certificate, error) {
	if len(certPEM) == 0 {
		return nil, errors.New("it is missing: put the CA certificate there as PEM")
	}
	block, _ := pem.Decode(certPEM)
	if block == nil || block.Type != pemCertificate {
		return nil, fmt.Errorf("it holds no PEM block of type %s", pemCertificate)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("decoding the CA certificate: %w", err)
	}
	if !certificate.BasicConstraintsValid || !certificate.IsCA {
		return nil, fmt.Errorf("the certificate of %q is not that of a CA: its basic constraints must say CA:TRUE",
			certificate.Subject.CommonName)
	}
	if certificate.KeyUsage != 0 && certificate.KeyUsage&x509.KeyUsageCertSign == 0 {
		return nil, fmt.Errorf("the key usage of the certificate of %q does not allow to sign certificates",
			certificate.Subject.CommonName)
	}
	return certificate, nil
}

// parseCAKey decodes a private key in any of the three encodings. Its errors never quote the key.
func parseCAKey(keyPEM []byte) (crypto.Signer, error) {
	if len(keyPEM) == 0 {
		return nil, errors.New("it is missing: put the private key of the CA there as PEM")
	}
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errors.New("it holds no PEM block")
	}
	key, err := decodePrivateKey(block)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot sign", key)
	}
	return signer, nil
}

func decodePrivateKey(block *pem.Block) (any, error) {
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("it is a PEM block of type %q, and must be PRIVATE KEY, RSA PRIVATE KEY or "+
			"EC PRIVATE KEY, not encrypted", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("the PEM block %s does not hold such a key", block.Type)
	}
	return key, nil
}

// newSerial returns a random positive serial number of 128 bits.
func newSerial(random io.Reader) (*big.Int, error) {
	raw := make([]byte, serialBytes)
	if _, err := io.ReadFull(random, raw); err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	raw[0] |= 0x40 // never zero, and of the same length every time
	return new(big.Int).SetBytes(raw), nil
}
