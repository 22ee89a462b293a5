package bootstrap

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/spokelet/spokelet/internal/roundtrip"
)

// sentWith returns how a client with this configuration authenticates.
func sentWith(t *testing.T, config *rest.Config) string {
	t.Helper()
	sent := ""
	client, err := rest.HTTPWrappersForConfig(config, roundtrip.Func(func(r *http.Request) (*http.Response, error) {
		sent = r.Header.Get("Authorization")
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x.example", http.NoBody)
	require.NoError(t, err)
	answer, err := client.RoundTrip(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return sent
}

// The file of the token is looked at when the kubeconfig is read, and read again with the requests. A user who may
// write into the directory can put a link there in between.
// Shows: security/kubeconfigs-read-no-files
func TestATokenBesideAKubeconfigIsReadAgainInsideItsDirectoryOnly(t *testing.T) {
	outside, dir := filepath.Join(t.TempDir(), "token-of-the-pod"), t.TempDir()
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	token := filepath.Join(dir, "token")
	config := &rest.Config{BearerTokenFile: token}
	// By this clock every token is too old to be used again without a look at the file.
	clock := clocktesting.NewFakePassiveClock(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	require.ErrorContains(t, rereadToken(config, dir, clock), "reading the token in "+token)
	require.NoError(t, os.WriteFile(token, []byte("\n"), 0o600))
	require.ErrorContains(t, rereadToken(config, dir, clock), "the file is empty")

	require.NoError(t, os.WriteFile(token, []byte("one\n"), 0o600))
	require.NoError(t, rereadToken(config, dir, clock))
	assert.Empty(t, config.BearerTokenFile, "client-go would follow a link")
	assert.Equal(t, "Bearer one", sentWith(t, config))
	require.NoError(t, os.WriteFile(token, []byte("two"), 0o600))
	assert.Equal(t, "Bearer two", sentWith(t, config))
	require.NoError(t, os.Remove(token))
	assert.Equal(t, "Bearer two", sentWith(t, config), "the last one, while the file is not there")
	require.NoError(t, os.Symlink(outside, token))
	assert.Equal(t, "Bearer two", sentWith(t, config), "the server in the kubeconfig gets no file of the pod")
}
