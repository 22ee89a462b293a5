package credentials_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/spokelet/spokelet/hub/webhook"
	"github.com/spokelet/spokelet/test/suite"
)

// converter is the conversion webhook of the hub.
type converter struct {
	port        int
	certificate []byte
}

// startConverter runs the webhook. The API servers retry until it answers.
func startConverter(t suite.T) converter {
	dir := t.TempDir()
	certificate, key, err := selfSigned()
	require.NoError(t, err)
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	c := converter{port: suite.FreePort(t), certificate: certificate}
	suite.StartProgram(t, "the webhook", func(ctx context.Context) error {
		return webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: c.port, CertDir: dir}, logr.Discard()).Start(ctx)
	})
	return c
}

func (c converter) config() apiextensionsv1.WebhookClientConfig {
	url := fmt.Sprintf("https://127.0.0.1:%d%s", c.port, webhook.Path)
	return apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: c.certificate}
}

// selfSigned returns a serving certificate for 127.0.0.1 that vouches for itself, and its key.
func selfSigned() (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
