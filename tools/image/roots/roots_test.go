package roots

import (
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func TestTheFileHasEveryRootThatIsTrustedWithoutALimit(t *testing.T) {
	limited, free := map[string]bool{}, 0
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			limited[string(root.Certificate)] = true
		} else {
			free++
		}
	}
	data, err := PEM()
	require.NoError(t, err)
	assert.True(t, x509.NewCertPool().AppendCertsFromPEM(data), "Go reads the file")
	found := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		assert.False(t, limited[string(block.Bytes)], "%s is trusted with a limit", certificate.Subject)
		assert.True(t, certificate.IsCA, certificate.Subject.String())
		found++
	}
	assert.Equal(t, free, found)
	assert.Greater(t, found, 100)
}
