package sandbox

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	certLifetime = 365 * 24 * time.Hour
	// certBackdate lets clocks differ a little.
	certBackdate = time.Hour
)

// authority is the certificate authority of one control plane; it signs servers and users alike.
type authority struct {
	cert    *x509.Certificate
	key     crypto.Signer
	certPEM []byte
}

// newAuthority creates an authority of a name. A nil key is a new ECDSA key.
func newAuthority(name string, key crypto.Signer, now time.Time) (*authority, error) {
	if key == nil {
		var err error
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, fmt.Errorf("making the key of the certificate authority: %w", err)
		}
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	cert, certPEM, err := sign(template, nil, key, key.Public(), now)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key, certPEM: certPEM}, nil
}

// CA is a certificate authority for tests, of an add-on author or of a webhook.
type CA struct {
	Certificate *x509.Certificate
	// CertPEM and KeyPEM are the certificate and the PKCS #8 key, as a Secret of type kubernetes.io/tls has them.
	CertPEM, KeyPEM []byte

	authority *authority
}

// NewCA creates a certificate authority of a name. A nil key is a new ECDSA key.
func NewCA(name string, key crypto.Signer) (*CA, error) {
	a, err := newAuthority(name, key, time.Now())
	if err != nil {
		return nil, err
	}
	keyPEM, err := encodeKey(a.key)
	return &CA{Certificate: a.cert, CertPEM: a.certPEM, KeyPEM: keyPEM, authority: a}, err
}

// Secret returns the authority as a Secret of type kubernetes.io/tls, which says that it serves the add-ons; with none,
// it says nothing.
func (c *CA) Secret(namespace, name string, addOns ...string) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: c.CertPEM, corev1.TLSPrivateKeyKey: c.KeyPEM},
	}
	if len(addOns) > 0 {
		secret.Annotations = map[string]string{"addon.spokelet.io/signer-addons": strings.Join(addOns, ",")}
	}
	return secret
}

// Server issues a certificate for a server on loopback under the given further names.
func (c *CA) Server(dnsNames ...string) (certPEM, keyPEM []byte, err error) {
	return c.authority.server(time.Now(), dnsNames...)
}

// server issues a certificate for a server on loopback under the given further names.
func (a *authority) server(now time.Time, dnsNames ...string) (certPEM, keyPEM []byte, err error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "server"},
		DNSNames:    append([]string{"localhost"}, dnsNames...),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, now)
}

// client issues a certificate for a user and its groups.
func (a *authority) client(now time.Time, user string, groups ...string) (certPEM, keyPEM []byte, err error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, now)
}

func (a *authority) issue(template *x509.Certificate, now time.Time) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	_, certPEM, err = sign(template, a.cert, a.key, key.Public(), now)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = encodeKey(key)
	return certPEM, keyPEM, err
}

func sign(
	template, parent *x509.Certificate, key crypto.Signer, public crypto.PublicKey, now time.Time,
) (*x509.Certificate, []byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = now.Add(-certBackdate), now.Add(certLifetime)
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing a certificate for %s: %w", template.Subject, err)
	}
	cert, err := x509.ParseCertificate(der)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

// SignRequest answers a certificate request as the controllers of the control plane do, with a validity of the caller's
// choice.
func (c *ControlPlane) SignRequest(request []byte, from, to time.Time) ([]byte, error) {
	return c.authority.signRequest(request, from, to)
}

// SignRequest answers a certificate request for a client with a validity of the caller's choice.
func (c *CA) SignRequest(request []byte, from, to time.Time) ([]byte, error) {
	return c.authority.signRequest(request, from, to)
}

func (a *authority) signRequest(request []byte, from, to time.Time) ([]byte, error) {
	block, _ := pem.Decode(request)
	if block == nil {
		return nil, errors.New("signing a request: it is not PEM")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("signing a request: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: parsed.Subject, DNSNames: parsed.DNSNames, NotBefore: from, NotAfter: to,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, parsed.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate for %s: %w", parsed.Subject, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// writePKI writes into dir all that the three processes read: the authority, the server certificate, and the key pair
// that signs ServiceAccount tokens.
func (a *authority) writePKI(dir string, now time.Time) error {
	caKey, err := encodeKey(a.key)
	if err != nil {
		return err
	}
	serverCert, serverKey, err := a.server(now, "kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	tokenKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("making the key for ServiceAccount tokens: %w", err)
	}
	tokenKeyPEM, err := encodeKey(tokenKey)
	if err != nil {
		return err
	}
	tokenPublic, err := x509.MarshalPKIXPublicKey(tokenKey.Public())
	if err != nil {
		return fmt.Errorf("encoding the key for ServiceAccount tokens: %w", err)
	}
	var errs []error
	for name, data := range map[string][]byte{
		"ca.crt": a.certPEM, "ca.key": caKey, "server.crt": serverCert, "server.key": serverKey, "tokens.key": tokenKeyPEM,
		"tokens.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: tokenPublic}),
	} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return errors.Join(errs...)
}
