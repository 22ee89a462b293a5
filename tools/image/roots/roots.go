package roots

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Module is the path of the Go module that the certificates come from.
const Module = "golang.org/x/crypto/x509roots/fallback"

// PEM returns the certificates as a file that programs read, each below its subject. A root whose trust is limited to
// certificates from before a date is left out: a file cannot express that limit. The error names a certificate that
// cannot be read.
func PEM() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("reading a certificate of %s: %w", Module, err)
		}
		fmt.Fprintf(&out, "# %s\n", certificate.Subject)
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("writing the certificate of %s: %w", certificate.Subject, err)
		}
	}
	return out.Bytes(), nil
}
