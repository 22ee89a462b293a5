package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"
)

// serialBits is the length of serial numbers.
const serialBits = 120

// pair is a certificate with its key.
type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newAuthority creates an authority that signs only serving certificates of the webhook.
func newAuthority(now time.Time, random io.Reader) (pair, error) {
	template := &x509.Certificate{
		// Every authority has another name, so that clients find the one that signed.
		Subject:   pkix.Name{CommonName: fmt.Sprintf("spokelet-hub-webhook-ca@%d", now.Unix())},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	return sign(template, nil, random)
}

// newServing creates a serving certificate for DNS names and IP addresses.
func newServing(authority pair, names []string, now time.Time, random io.Reader) (pair, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "spokelet-hub-webhook"},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(servingLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return sign(template, &authority, random)
}

// sign creates a key and its certificate, signed by an authority or, without one, by itself.
func sign(template *x509.Certificate, authority *pair, random io.Reader) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return pair{}, fmt.Errorf("making a key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(random, new(big.Int).Lsh(big.NewInt(1), serialBits)); err != nil {
		return pair{}, fmt.Errorf("drawing a serial number: %w", err)
	}
	by := pair{certificate: template, key: key}
	if authority != nil {
		by = *authority
	}
	der, err := x509.CreateCertificate(random, template, by.certificate, key.Public(), by.key)
	if err != nil {
		return pair{}, fmt.Errorf("signing a certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return pair{}, fmt.Errorf("reading back a certificate: %w", err)
	}
	return pair{certificate: certificate, key: key}, nil
}
