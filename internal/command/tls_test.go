package command

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatIsServedOverTLS(t *testing.T) {
	var c tls.Config
	require.NoError(t, TLS{}.Apply(&c))
	assert.Equal(t, uint16(tls.VersionTLS12), c.MinVersion)
	assert.Nil(t, c.CipherSuites)
	require.NoError(t, TLS{MinVersion: "VersionTLS13", CipherSuites: []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}}.Apply(&c))
	assert.Equal(t, uint16(tls.VersionTLS13), c.MinVersion)
	assert.Equal(t, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}, c.CipherSuites)
	require.ErrorContains(t, TLS{MinVersion: "VersionTLS11"}.Apply(&c), "these are VersionTLS12 and VersionTLS13")
	require.ErrorContains(t, TLS{CipherSuites: []string{"X"}}.Apply(&c), "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
}
